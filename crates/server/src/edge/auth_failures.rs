//! How many wrong tokens an address may send: after that its tokens are not looked at for a while,
//! so that no one can try many. The table is bounded; an address that is forgotten starts anew.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::listen::network;

/// The time in which failures are counted.
const PERIOD: Duration = Duration::from_secs(60);
/// The most addresses that are remembered.
const ADDRESSES_MAX: usize = 4_096;

/// The failures of addresses.
pub(crate) struct AuthFailures {
    /// How many an address may have in a minute; 0 for any number.
    per_minute: u32,
    /// When each address has as many tries again as at first.
    settled_at: Mutex<HashMap<IpAddr, Instant>>,
}

impl AuthFailures {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute, settled_at: Mutex::default() }
    }

    /// Refuses an address that has no try left, with the time until it has one.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Duration> {
        let Some(step) = PERIOD.checked_div(self.per_minute) else { return Ok(()) };
        let settled_at = self.settled_at.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(settled_at) = settled_at.get(&network(address)) else { return Ok(()) };
        let debt = settled_at.saturating_duration_since(Instant::now());
        match (debt + step).saturating_sub(PERIOD) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// Counts a failure of an address; returns whether it was its last try.
    pub(crate) fn count(&self, address: IpAddr) -> bool {
        let Some(step) = PERIOD.checked_div(self.per_minute) else { return false };
        let (now, network) = (Instant::now(), network(address));
        {
            let mut settled_at = self.settled_at.lock().unwrap_or_else(PoisonError::into_inner);
            if settled_at.len() >= ADDRESSES_MAX && !settled_at.contains_key(&network) {
                make_room(&mut settled_at, now);
            }
            let settled_at = settled_at.entry(network).or_insert(now);
            *settled_at = (*settled_at).max(now) + step;
        }
        self.check(address).is_err()
    }
}

/// Forgets the addresses that have all their tries again, or else the one that has them next.
fn make_room(settled_at: &mut HashMap<IpAddr, Instant>, now: Instant) {
    settled_at.retain(|_, at| *at > now);
    if settled_at.len() >= ADDRESSES_MAX
        && let Some(first) = settled_at.iter().min_by_key(|(_, at)| **at).map(|(address, _)| *address)
    {
        settled_at.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn v4(last: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + last).into()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_so_many_tries_in_a_minute() {
        let failures = AuthFailures::new(6);
        for nth in 1..=6 {
            assert_eq!(failures.check(v4(1)), Ok(()));
            assert_eq!(failures.count(v4(1)), nth == 6, "{nth}");
        }
        assert_eq!(failures.check(v4(1)), Err(Duration::from_secs(10)));
        assert_eq!(failures.check(v4(2)), Ok(()), "another address");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(failures.check(v4(1)), Ok(()), "one more");
        assert!(failures.count(v4(1)));
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..5 {
            assert!(!failures.count(v4(1)), "all of them again");
        }
    }

    #[test]
    fn one_network_shares_its_tries() {
        let failures = AuthFailures::new(1);
        let address = |text: &str| IpAddr::V6(text.parse::<Ipv6Addr>().unwrap());
        failures.count(address("2001:db8:1:2::1"));
        assert!(failures.check(address("2001:db8:1:2:ffff::9")).is_err());
        assert!(failures.check(address("2001:db8:1:3::1")).is_ok());
        failures.count(address("::ffff:10.0.0.1"));
        assert!(failures.check(v4(1)).is_err(), "the same machine");
        assert!(AuthFailures::new(0).check(v4(1)).is_ok());
        assert!(!AuthFailures::new(0).count(v4(1)));
    }

    /// However many addresses fail, the table stays small, and those that failed most stay in it.
    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let failures = AuthFailures::new(2);
        failures.count(v4(0));
        failures.count(v4(0));
        for last in 1..=2 * ADDRESSES_MAX as u32 {
            failures.count(v4(last));
        }
        assert_eq!(failures.settled_at.lock().unwrap().len(), ADDRESSES_MAX);
        assert!(failures.check(v4(0)).is_err());
        tokio::time::advance(PERIOD).await;
        failures.count(v4(1_000_000));
        assert_eq!(failures.settled_at.lock().unwrap().len(), 1, "what is over is forgotten");
    }
}
