//! The server's clock as far as this process knows it, for plain commands that have no script to
//! read it: the machine's monotonic clock, and the offset of the server's clock from it. It is
//! refreshed every second while it is used, and is off by no more than one round trip. That is
//! harmless: it is used for leases, whose holders are known by their tokens and renew them in good
//! time, and for the expiry of records, where a round trip does not matter.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::cmd;
use tidegate_core::Time;
use tidegate_store::{Clock, Result, SteadyClock};

use crate::connection::SharedConnection;
use crate::errors::unusable;
use crate::reply;

/// The offset is refreshed after this long; other callers use the known one meanwhile.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// After this long no caller continues without a refresh: this process, its machine or the server's
/// clock may have been paused or set.
const USED_FOR: Duration = Duration::from_secs(5);

/// What is known of the server's clock.
pub(crate) struct ServerTime {
    steady: SteadyClock,
    offset: Mutex<Option<ClockOffset>>,
    /// Held by the caller that refreshes.
    asking: tokio::sync::Mutex<()>,
}

/// The offset of the server's clock from the monotonic one, and when it was measured by that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockOffset {
    ahead: i64,
    at: Time,
}

impl ServerTime {
    pub(crate) fn new() -> Self {
        Self { steady: SteadyClock::new(), offset: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    /// The time at the server that has `key`; in a cluster, at one of its nodes.
    pub(crate) async fn now(&self, link: &SharedConnection, key: &str) -> Result<Time> {
        if let Some(known) = self.younger_than(FRESH_FOR) {
            return Ok(self.apply_offset(known));
        }
        let _asking = match (self.asking.try_lock(), self.younger_than(USED_FOR)) {
            (Ok(asking), _) => asking,
            (Err(_), Some(known)) => return Ok(self.apply_offset(known)),
            (Err(_), None) => self.asking.lock().await,
        };
        if let Some(known) = self.younger_than(FRESH_FOR) {
            return Ok(self.apply_offset(known));
        }
        let asked = self.steady.now();
        let answer = link.send_to(key, cmd("TIME")).await;
        let answered = self.steady.now();
        let answer = answer.map_err(|failed| unusable(link.name(), failed))?;
        let (seconds, micros): (u64, u64) = reply::parsed(answer)?;
        let server_at = seconds.saturating_mul(1_000_000).saturating_add(micros);
        let known = updated_offset(self.offset(), asked, answered, Time::from_micros(server_at));
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(self.apply_offset(known))
    }

    fn offset(&self) -> Option<ClockOffset> {
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn younger_than(&self, age: Duration) -> Option<ClockOffset> {
        self.offset().filter(|known| self.steady.now().since(known.at) < age)
    }

    fn apply_offset(&self, known: ClockOffset) -> Time {
        Time::from_micros(self.steady.now().as_micros().saturating_add_signed(known.ahead))
    }
}

/// Computes the offset from a reply. The server read its clock at some time during the round trip.
/// The known offset stays while it is consistent with that, so that a slow round trip does no harm.
/// Otherwise the server is assumed to have read its clock at the very end, because a time that is a
/// little behind expires no lease early.
fn updated_offset(known: Option<ClockOffset>, asked: Time, answered: Time, server_at: Time) -> ClockOffset {
    let least = ahead_of(server_at, answered);
    let most = ahead_of(server_at, asked);
    let ahead = known.map(|known| known.ahead).filter(|ahead| (least..=most).contains(ahead));
    ClockOffset { ahead: ahead.unwrap_or(least), at: answered }
}

/// How far one time is ahead of another, in microseconds.
fn ahead_of(time: Time, other: Time) -> i64 {
    let (time, other) = (time.as_micros(), other.as_micros());
    i64::try_from(i128::from(time) - i128::from(other)).unwrap_or(if time > other {
        i64::MAX
    } else {
        i64::MIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Time = Time::from_micros;

    #[test]
    fn the_first_answer_is_taken_to_be_as_old_as_it_can_be_young() {
        let known = updated_offset(None, AT(1_000), AT(1_400), AT(5_000));
        assert_eq!(known, ClockOffset { ahead: 3_600, at: AT(1_400) });
        assert_eq!(
            updated_offset(None, AT(9_000), AT(9_100), AT(5_000)).ahead,
            -4_100,
            "a server that is behind"
        );
    }

    #[test]
    fn a_slow_trip_changes_nothing_and_a_clock_that_was_set_does() {
        let known = updated_offset(None, AT(1_000), AT(1_400), AT(5_000));
        let slow = updated_offset(Some(known), AT(2_000), AT(900_000), AT(5_800));
        assert_eq!(slow, ClockOffset { ahead: 3_600, at: AT(900_000) });
        let set_back = updated_offset(Some(slow), AT(950_000), AT(950_200), AT(3_000));
        assert_eq!(set_back.ahead, -947_200);
        let set_forth = updated_offset(Some(set_back), AT(960_000), AT(960_200), AT(2_000_000));
        assert_eq!(set_forth.ahead, 1_039_800);
    }
}
