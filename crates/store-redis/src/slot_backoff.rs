//! Slots of a cluster whose server could not be reached a moment ago. Each command for such a slot
//! makes the driver connect to the whole cluster again, and everything else waits for that. So one
//! command tries from time to time, and the others fail at once. Which server has a slot is the
//! driver's business.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::cluster_routing::Slot;
use redis::{Arg, Cmd, ErrorKind, RedisError};
use tokio::time::Instant;

use crate::connection::CommandFailure;
use crate::errors::Delivery;

/// How long commands for a slot fail after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest time without an attempt.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Commands without a key.
const KEYLESS: [&str; 7] = ["CLUSTER", "CONFIG", "INFO", "PING", "PUBLISH", "SCRIPT", "SCAN"];

/// The slots that could not be reached.
#[derive(Debug, Default)]
pub(crate) struct SlotBackoff(Mutex<HashMap<Slot, Waiting>>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    wait: Duration,
    /// When the next command is let through.
    next_at: Instant,
}

impl SlotBackoff {
    /// Lets a command through, unless its slot could not be reached a moment ago.
    pub(crate) fn check(&self, slot: Option<Slot>, now: Instant) -> Result<(), CommandFailure> {
        let mut slots = self.slots();
        let Some(waiting) = slot.and_then(|slot| slots.get_mut(&slot)) else { return Ok(()) };
        if now < waiting.next_at {
            let cause = std::io::Error::new(
                std::io::ErrorKind::NotConnected,
                "the server that has the key could not be reached a moment ago",
            );
            return Err(CommandFailure { delivery: Delivery::NoEffect, cause: cause.into() });
        }
        // Until this one is answered, or given up, the others go on waiting.
        waiting.next_at = now + waiting.wait;
        Ok(())
    }

    /// Records how a command that was let through has ended.
    pub(crate) fn record<T>(&self, slot: Option<Slot>, answer: &Result<T, RedisError>, now: Instant) {
        let Some(slot) = slot else { return };
        let is_away = answer.as_ref().is_err_and(|cause| {
            cause.is_io_error()
                || cause.is_connection_dropped()
                || cause.kind() == ErrorKind::ClusterConnectionNotFound
        });
        let mut slots = self.slots();
        if is_away {
            let wait = slots.get(&slot).map_or(FIRST_WAIT, |waiting| WAIT_MAX.min(2 * waiting.wait));
            slots.insert(slot, Waiting { wait, next_at: now + wait });
        } else {
            slots.remove(&slot);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Slot, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a command's first key, if it has one.
pub(crate) fn slot_of(command: &Cmd) -> Option<Slot> {
    let mut args = command.args_iter().map_while(|arg| match arg {
        Arg::Simple(arg) => Some(arg),
        _ => None,
    });
    let name = str::from_utf8(args.next()?).ok()?;
    let key = match name {
        "EVAL" | "EVALSHA" => args.nth(2),
        name if KEYLESS.contains(&name) => None,
        _ => args.next(),
    };
    key.map(Slot::for_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable() -> Result<(), RedisError> {
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into())
    }

    #[test]
    fn a_slot_is_that_of_the_first_key() {
        let slot = Some(Slot::for_key("tg:{3}:head"));
        assert_eq!(slot_of(redis::cmd("HGET").arg("tg:{3}:batches").arg("x")), slot);
        let script = redis::cmd("EVALSHA").arg("f00").arg(2).arg("tg:{3}:head").arg("tg:{3}:x").to_owned();
        assert_eq!(slot_of(&script), slot);
        assert_eq!(slot_of(redis::cmd("SCRIPT").arg("LOAD").arg("return 1")), None);
        assert_eq!(slot_of(&redis::cmd("PING")), None);
    }

    /// OPS-8: one command tries, the others fail without effect, and the wait grows to its bound.
    #[test]
    fn ops_8_one_command_tries_where_a_server_is_away() {
        let (backoff, slot, other) = (SlotBackoff::default(), Slot::new(7), Slot::new(8));
        let mut now = Instant::now();
        assert!(backoff.check(slot, now).is_ok());
        backoff.record(slot, &unreachable(), now);
        for wait in [100, 200, 400, 800, 1_000, 1_000].map(Duration::from_millis) {
            let just_before = now + wait - Duration::from_nanos(1);
            let failed = backoff.check(slot, just_before).unwrap_err();
            assert_eq!(failed.delivery, Delivery::NoEffect);
            assert!(backoff.check(other, now).is_ok() && backoff.check(None, now).is_ok());
            now += wait;
            assert!(backoff.check(slot, now).is_ok());
            assert!(backoff.check(slot, now).is_err(), "a second one beside the first");
            backoff.record(slot, &unreachable(), now);
        }
        now += WAIT_MAX;
        assert!(backoff.check(slot, now).is_ok());
        backoff.record(slot, &Ok(()), now);
        assert!(backoff.check(slot, now).is_ok() && backoff.check(slot, now).is_ok(), "it is back");
    }

    /// OPS-8: a command that was let through and never answered blocks no one for good.
    #[test]
    fn ops_8_an_abandoned_attempt_is_followed_by_another() {
        let (backoff, slot, start) = (SlotBackoff::default(), Slot::new(7), Instant::now());
        backoff.record(slot, &unreachable(), start);
        let first = start + FIRST_WAIT;
        assert!(backoff.check(slot, first).is_ok() && backoff.check(slot, first).is_err());
        assert!(backoff.check(slot, first + FIRST_WAIT).is_ok());
    }

    #[test]
    fn an_error_of_the_server_is_an_answer() {
        let (backoff, slot, now) = (SlotBackoff::default(), Slot::new(7), Instant::now());
        backoff.record(slot, &Err::<(), _>((ErrorKind::UnexpectedReturnType, "odd").into()), now);
        assert!(backoff.check(slot, now).is_ok());
    }
}
