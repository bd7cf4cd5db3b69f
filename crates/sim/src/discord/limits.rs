//! The figures of every limit, observed or documented, by name; each can be changed while calls
//! run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::window::WindowLimit;

/// The limit on all calls of one bot.
pub const GLOBAL: &str = "global";
/// The hidden limit on changing one channel's name or topic.
pub const RENAMES: &str = "renames";
/// The hidden limit on creating roles in one guild.
pub const ROLE_CREATES: &str = "role-creates";
/// Refused calls of one address, before it is banned.
pub const INVALID: &str = "invalid";

/// Every limit by name: calls, and the window in milliseconds.
const FIGURES: [(&str, u64, u64); 24] = [
    (GLOBAL, 50, 1_000),
    (RENAMES, 2, 600_000),
    (ROLE_CREATES, 250, 48 * 3_600_000),
    (INVALID, 10_000, 600_000),
    ("me", 10, 10_000),
    ("application", 10, 10_000),
    ("gateway-bot", 2, 5_000),
    ("guild", 10, 10_000),
    ("member", 10, 10_000),
    ("roles-list", 10, 10_000),
    ("role-create", 10, 10_000),
    ("role-positions", 5, 10_000),
    ("role-edit", 10, 10_000),
    ("channels-list", 10, 10_000),
    ("channel-create", 10, 10_000),
    ("channel-positions", 5, 10_000),
    ("channel-get", 10, 10_000),
    ("channel-edit", 5, 15_000),
    ("channel-delete", 10, 15_000),
    ("overwrites", 10, 15_000),
    ("messages-read", 5, 5_000),
    ("message-create", 5, 5_000),
    ("message-edit", 5, 5_000),
    ("message-delete", 5, 1_000),
];

/// The largest count of a figure.
const CALLS_MAX: u64 = 1_000_000_000;
/// The longest time, in milliseconds: some 11 days.
const TIME_MAX_MS: u64 = 1_000_000_000;

/// All limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiscordLimits {
    figures: BTreeMap<&'static str, WindowLimit>,
    /// How long an address is banned, in milliseconds.
    pub ban_ms: u64,
    /// How long a nonce is remembered, in milliseconds.
    pub nonce_ms: u64,
    /// Most roles of a guild besides @everyone.
    pub roles_max: usize,
    /// Most channels of a guild, including categories.
    pub channels_max: usize,
    /// Most channels of a category.
    pub category_max: usize,
}

/// New figures for some limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscordLimitsChange {
    #[serde(default)]
    figures: BTreeMap<String, WindowLimitBody>,
    ban_ms: Option<u64>,
    nonce_ms: Option<u64>,
    roles_max: Option<usize>,
    channels_max: Option<usize>,
    category_max: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowLimitBody {
    calls: u64,
    window_ms: u64,
}

impl Default for DiscordLimits {
    /// Returns Discord's limits.
    fn default() -> Self {
        Self {
            figures: FIGURES.iter().map(|(name, calls, ms)| (*name, WindowLimit::new(*calls, *ms))).collect(),
            ban_ms: 24 * 3_600_000,
            nonce_ms: 180_000,
            roles_max: 250,
            channels_max: 500,
            category_max: 50,
        }
    }
}

impl DiscordLimits {
    /// Returns the figure of a limit; unlimited when there is none.
    #[must_use]
    pub fn of(&self, name: &str) -> WindowLimit {
        self.figures.get(name).copied().unwrap_or(WindowLimit::new(CALLS_MAX, 1))
    }

    /// Returns how long an address is banned.
    #[must_use]
    pub const fn ban(&self) -> Duration {
        Duration::from_millis(self.ban_ms)
    }

    /// Returns how long a nonce is remembered.
    #[must_use]
    pub const fn nonce(&self) -> Duration {
        Duration::from_millis(self.nonce_ms)
    }

    /// Sets a limit by name; `routes` is every limit that a header announces.
    ///
    /// # Errors
    /// When there is no such limit, or the figure is out of range.
    pub fn set(&mut self, name: &str, calls: u64, window_ms: u64) -> Result<(), String> {
        if !(1..=CALLS_MAX).contains(&calls) || !(1..=TIME_MAX_MS).contains(&window_ms) {
            return Err(format!(
                "a limit is 1 to {CALLS_MAX} calls in 1 to {TIME_MAX_MS} ms, and {name} is not"
            ));
        }
        let is_route = |known: &str| ![GLOBAL, RENAMES, ROLE_CREATES, INVALID].contains(&known);
        let mut found = false;
        for (known, figure) in &mut self.figures {
            if *known == name || name == "routes" && is_route(known) {
                *figure = WindowLimit::new(calls, window_ms);
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        let known: Vec<_> = self.figures.keys().copied().collect();
        Err(format!(
            "unknown limit {name:?}; known are routes (all that headers announce), {}",
            known.join(", ")
        ))
    }

    /// Returns these limits with every window so many times shorter.
    #[must_use]
    pub fn sped_up(&self, times: u64) -> Self {
        let mut changed = self.clone();
        for figure in changed.figures.values_mut() {
            let window = figure.window / u32::try_from(times.max(1)).unwrap_or(u32::MAX);
            figure.window = window.max(Duration::from_millis(1));
        }
        changed
    }

    /// Returns these limits with a change applied.
    ///
    /// # Errors
    /// When the change names a limit that does not exist, or a figure is out of range.
    pub fn with(&self, change: &DiscordLimitsChange) -> Result<Self, String> {
        let mut changed = self.clone();
        // `routes` first, so that one of them can still be set differently.
        for every in [true, false] {
            for (name, figure) in change.figures.iter().filter(|(name, _)| (*name == "routes") == every) {
                changed.set(name, figure.calls, figure.window_ms)?;
            }
        }
        for (ours, theirs) in [(&mut changed.ban_ms, change.ban_ms), (&mut changed.nonce_ms, change.nonce_ms)]
        {
            *ours = theirs.unwrap_or(*ours).min(TIME_MAX_MS);
        }
        let counts = [
            (&mut changed.roles_max, change.roles_max),
            (&mut changed.channels_max, change.channels_max),
            (&mut changed.category_max, change.category_max),
        ];
        for (ours, theirs) in counts {
            *ours = theirs.unwrap_or(*ours).min(10_000);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_can_all_be_shorter() {
        let (whole, shorter) = (DiscordLimits::default(), DiscordLimits::default().sped_up(10));
        assert_eq!(
            (shorter.of("channel-create"), shorter.of(GLOBAL)),
            (WindowLimit::new(10, 1_000), WindowLimit::new(50, 100))
        );
        assert_eq!((whole.sped_up(0), whole.sped_up(u64::MAX).of("me")), (whole, WindowLimit::new(10, 1)));
    }

    #[test]
    fn a_change_leaves_the_rest_alone() {
        let read = |text: &str| serde_json::from_str::<DiscordLimitsChange>(text).unwrap();
        let text =
            r#"{"figures":{"routes":{"calls":7,"window_ms":9},"me":{"calls":1,"window_ms":2}},"ban_ms":3}"#;
        let changed = DiscordLimits::default().with(&read(text)).unwrap();
        assert_eq!(changed.of("me"), WindowLimit::new(1, 2));
        assert_eq!(changed.of("message-edit"), WindowLimit::new(7, 9));
        assert_eq!(changed.of(GLOBAL), WindowLimit::new(50, 1_000));
        assert_eq!((changed.ban_ms, changed.nonce_ms), (3, 180_000));
        let error = DiscordLimits::default().with(&read(r#"{"figures":{"mee":{"calls":1,"window_ms":2}}}"#));
        assert!(error.unwrap_err().contains("message-create"));
        assert!(
            DiscordLimits::default().set("me", 0, 1).is_err()
                && DiscordLimits::default().set("me", 1, 0).is_err()
        );
        assert!(serde_json::from_str::<DiscordLimitsChange>(r#"{"bann_ms":3}"#).is_err());
    }
}
