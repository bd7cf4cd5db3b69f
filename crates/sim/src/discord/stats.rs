//! The counts of the simulator: those that every simulator has, and Discord's own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::duplicates::{excess, find_duplicates};
use super::guild::{Guild, GuildStats};
use crate::stats::Stats;

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscordStats {
    /// Counts of all guilds, as every simulator reports them. Duplicates are objects that exist
    /// twice now.
    #[serde(flatten)]
    pub all: Stats,
    /// Refused calls that count towards a ban: 401, 403, and 429 that is not shared.
    pub invalid: u64,
    /// Bans that began.
    pub bans: u64,
    /// Calls refused by a ban.
    pub banned: u64,
    /// Calls that failed or were cut at random or by an injected fault.
    pub faults: u64,
    /// 429 responses by route, without bans.
    pub throttled_by_route: BTreeMap<String, u64>,
    /// 429 responses by scope; `hidden` is a limit that no header announces.
    pub throttled_by_scope: BTreeMap<String, u64>,
    /// Calls that succeeded, by route.
    pub done_by_route: BTreeMap<String, u64>,
    /// The ids of duplicates, by guild and key.
    pub duplicates_by_key: BTreeMap<String, Vec<String>>,
    /// Counts by guild.
    pub guilds: BTreeMap<String, GuildStats>,
}

impl DiscordStats {
    /// Adds the counts of what exists now.
    #[must_use]
    pub fn with<'a>(&self, guilds: impl Iterator<Item = &'a Guild>) -> Self {
        let mut stats = self.clone();
        for guild in guilds {
            let found = find_duplicates(guild);
            stats.all.duplicates += excess(&found);
            let named = found.into_iter().map(|(what, ids)| (format!("guild {} {what}", guild.id), ids));
            stats.duplicates_by_key.extend(named);
            let counts = guild.stats();
            let kinds = [
                ("roles", counts.roles),
                ("channels", counts.channels),
                ("messages", counts.messages),
                ("overwrites", counts.overwrites),
            ];
            for (kind, count) in kinds {
                *stats.all.objects.entry(kind.to_owned()).or_default() += count;
            }
            stats.guilds.insert(guild.id.to_string(), counts);
        }
        stats
    }

    /// Counts a throttled call.
    pub fn throttle(&mut self, route: String, scope: &str) {
        self.all.throttled += 1;
        self.all.overstepped += u64::from(scope != "shared");
        *self.throttled_by_route.entry(route).or_default() += 1;
        *self.throttled_by_scope.entry(scope.to_owned()).or_default() += 1;
    }
}
