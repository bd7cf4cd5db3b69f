//! Decides which calls are admitted: the limit on all calls of a bot, the limits of routes, those
//! set from outside, and the ban of an address. It looks at no body and knows no guild.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_core::Time;

use super::limits::{DiscordLimits, GLOBAL, INVALID};
use super::route::RouteTarget;
use super::window::{WindowCounter, WindowDecision};

/// Most windows kept; beyond it expired ones are dropped.
const WINDOWS_MAX: usize = 100_000;

/// The scope of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitScope {
    /// The bot's limit on this route.
    User,
    /// The bot's limit on all calls.
    Global,
    /// Everyone's limit on this resource.
    Shared,
}

/// A call that was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The scope of the limit.
    pub scope: LimitScope,
    /// How long to wait.
    pub wait: Duration,
    /// What headers report of the route's own limit.
    pub decision: Option<WindowDecision>,
}

/// All limits and their usage.
#[derive(Debug, Default)]
pub struct RateLimiter {
    windows: HashMap<(u64, &'static str, u64), WindowCounter>,
    globals: HashMap<u64, WindowCounter>,
    closed_until: Time,
    shared: HashMap<&'static str, Time>,
    /// Routes closed for longer than their windows last.
    closed_routes: HashMap<(u64, &'static str, u64), Time>,
    invalid: HashMap<IpAddr, WindowCounter>,
    banned: HashMap<IpAddr, Time>,
}

impl RateLimiter {
    /// Admits a call. Returns the state of the route's limit; `None` when it has none.
    ///
    /// # Errors
    /// When it must wait.
    pub fn admit(
        &mut self,
        bot: u64,
        target: &RouteTarget,
        limits: &DiscordLimits,
        now: Time,
    ) -> Result<Option<WindowDecision>, LimitExceeded> {
        let closed = self.closed_until.since(now);
        if !closed.is_zero() {
            return Err(LimitExceeded { scope: LimitScope::Global, wait: closed, decision: None });
        }
        let global = self.globals.entry(bot).or_default().take(limits.of(GLOBAL), now);
        if !global.allowed {
            return Err(LimitExceeded {
                scope: LimitScope::Global,
                wait: global.reset_after,
                decision: None,
            });
        }
        let Some(limit) = target.route.limit else { return Ok(None) };
        if self.windows.len() >= WINDOWS_MAX {
            self.windows.retain(|(_, limit, _), window| !window.is_over(limits.of(limit), now));
        }
        let window = self.windows.entry((bot, limit, target.major())).or_default();
        let ruling = window.take(limits.of(limit), now);
        let closed = self.closed_routes.get(&(bot, limit, target.major()));
        let closed = closed.map_or(Duration::ZERO, |until| until.since(now));
        if !closed.is_zero() {
            return Err(LimitExceeded { scope: LimitScope::User, wait: closed, decision: Some(ruling) });
        }
        let shared = self.shared.get(limit).map_or(Duration::ZERO, |until| until.since(now));
        if !ruling.allowed {
            return Err(LimitExceeded {
                scope: LimitScope::User,
                wait: ruling.reset_after,
                decision: Some(ruling),
            });
        }
        if !shared.is_zero() {
            return Err(LimitExceeded { scope: LimitScope::Shared, wait: shared, decision: Some(ruling) });
        }
        Ok(Some(ruling))
    }

    /// Refuses all calls until then.
    pub fn close(&mut self, until: Time) {
        self.closed_until = until;
    }

    /// Closes a route for longer than its window lasts; returns for how long.
    pub fn close_route(
        &mut self,
        bot: u64,
        target: &RouteTarget,
        wait: Duration,
        longer: Duration,
        now: Time,
    ) -> Duration {
        let Some(limit) = target.route.limit.filter(|_| !longer.is_zero()) else { return wait };
        let until = self.closed_routes.entry((bot, limit, target.major())).or_default();
        if *until <= now {
            *until = now.after(wait.saturating_add(longer));
        }
        until.since(now)
    }

    /// Marks a limit as spent by others until then.
    pub fn exhaust_shared(&mut self, limit: &'static str, until: Time) {
        self.shared.insert(limit, until);
    }

    /// Returns how much longer an address is banned.
    #[must_use]
    pub fn ban_remaining(&self, peer: IpAddr, now: Time) -> Option<Duration> {
        self.banned.get(&peer).map(|until| until.since(now)).filter(|left| !left.is_zero())
    }

    /// Counts a refused call of an address; true when that one caused the ban.
    pub fn count_invalid(&mut self, peer: IpAddr, limits: &DiscordLimits, now: Time) -> bool {
        let window = self.invalid.entry(peer).or_default();
        let ruling = window.take(limits.of(INVALID), now);
        if ruling.remaining > 0 {
            return false;
        }
        *window = WindowCounter::default();
        self.banned.insert(peer, now.after(limits.ban()));
        true
    }

    /// Lifts all bans and closures, and resets all windows.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hyper::Method;
    use proptest::prelude::*;

    use super::*;

    fn target(method: &Method, path: &str) -> RouteTarget {
        RouteTarget::of(method, path).unwrap()
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(1_000_000 + ms)
    }

    proptest! {
        /// LIM-8: whatever is called in whatever guild, no route of a guild grants more than its
        /// figure in its window, guilds do not share their windows, and no bot gets more than the
        /// global limit.
        #[test]
        fn lim_8_buckets_are_by_limit_and_major(calls in prop::collection::vec((0_u64..3, 0_usize..4, 0_u64..400), 1..200)) {
            let mut limits = DiscordLimits::default();
            limits.set("routes", 3, 1_000).unwrap();
            limits.set(GLOBAL, 5, 200).unwrap();
            let (mut gate, mut now) = (RateLimiter::default(), 0);
            let mut granted: HashMap<(u64, &str), Vec<u64>> = HashMap::new();
            let mut all: Vec<u64> = Vec::new();
            for (guild, route, gap) in calls {
                now += gap / 8;
                let (method, path) = [
                    (Method::GET, "roles"), (Method::GET, "channels"), (Method::PATCH, "roles/5"), (Method::DELETE, "roles/5"),
                ][route].clone();
                let target = target(&method, &format!("/guilds/{}/{path}", guild + 1));
                let used = granted.entry((guild, target.route.limit.unwrap())).or_default();
                match gate.admit(7, &target, &limits, at(now)) {
                    Ok(ruling) => {
                        used.push(now);
                        all.push(now);
                        prop_assert_eq!(ruling.unwrap().limit, 3);
                    }
                    Err(limited) if limited.scope == LimitScope::User => {
                        // It was refused because this limit of this guild was spent, by three
                        // within its window.
                        all.push(now);
                        prop_assert!(used.iter().filter(|then| now - **then < 1_000).count() >= 3);
                    }
                    Err(limited) => {
                        prop_assert_eq!((limited.scope, limited.decision), (LimitScope::Global, None));
                        prop_assert!(all.iter().filter(|then| now - **then < 200).count() >= 5);
                    }
                }
            }
            for times in granted.values().filter(|times| !times.is_empty()) {
                let windows = (times[times.len() - 1] - times[0]) / 1_000 + 1;
                prop_assert!(times.len() as u64 <= 3 * windows, "{times:?}");
            }
        }
    }

    #[test]
    fn bots_have_limits_of_their_own_and_share_what_others_spent() {
        let (mut gate, limits) = (RateLimiter::default(), DiscordLimits::default());
        let list = target(&Method::GET, "/guilds/1/roles");
        for _ in 0..10 {
            assert!(gate.admit(1, &list, &limits, at(0)).is_ok());
        }
        let limited = gate.admit(1, &list, &limits, at(4)).unwrap_err();
        assert_eq!((limited.scope, limited.wait.as_millis()), (LimitScope::User, 9_996));
        assert!(gate.admit(2, &list, &limits, at(4)).is_ok());
        gate.exhaust_shared("roles-list", at(64_570));
        let limited = gate.admit(2, &list, &limits, at(5)).unwrap_err();
        let ruling = limited.decision.unwrap();
        assert_eq!(
            (limited.scope, limited.wait.as_millis(), ruling.remaining),
            (LimitScope::Shared, 64_565, 8)
        );
        assert!(ruling.reset_after < limited.wait, "its own limit does not show it");
        gate.close(at(30_000));
        assert_eq!(gate.admit(2, &list, &limits, at(29_999)).unwrap_err().scope, LimitScope::Global);
    }

    /// LIM-25: an address with too many refused calls is banned for long, and others are not.
    #[test]
    fn lim_25_an_address_is_banned() {
        let (mut gate, mut limits) = (RateLimiter::default(), DiscordLimits::default());
        limits.set(INVALID, 3, 1_000).unwrap();
        let [bad, good] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(127, 0, 0, last)));
        assert!(!gate.count_invalid(bad, &limits, at(0)) && !gate.count_invalid(bad, &limits, at(1)));
        assert!(!gate.count_invalid(bad, &limits, at(1_000)), "the first ones are over");
        assert!(!gate.count_invalid(bad, &limits, at(1_001)) && gate.count_invalid(bad, &limits, at(1_002)));
        assert_eq!(gate.ban_remaining(bad, at(1_002)), Some(limits.ban()));
        assert_eq!(
            (gate.ban_remaining(good, at(1_002)), gate.ban_remaining(bad, at(1_002).after(limits.ban()))),
            (None, None)
        );
    }
}
