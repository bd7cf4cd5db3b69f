//! Stand-alone buckets: a line of text each, because one short value costs the server less than a hash of five. The script takes and says what was there before; what that means for the caller
//! is worked out here by the pure function, so that a delay is never restated in another language.

use redis::Value;
use tidegate_core::Time;
use tidegate_core::shared::bucket::{self, Level, Reserve, Reserved, Settlement};
use tidegate_store::Result;

use crate::scripts::{self, Call};
use crate::trouble::undecided;
use crate::{Redis, checks, reply};

impl Redis {
    pub(super) async fn reserve_all(&self, wanted: &[Reserve]) -> Result<Reserved> {
        checks::named_once(wanted)?;
        if self.link.is_cluster() {
            checks::one_family(wanted)?;
        }
        if wanted.is_empty() {
            return Ok(Reserved::Granted { remaining: Vec::new() });
        }
        let mut call = Call::new(&scripts::BUCKET_RESERVE, []).with(self.now());
        for want in wanted {
            call.on(self.keys.bucket(&want.name));
            call.tell(want.cost).tell(want.capacity).tell(want.refill_per_s);
        }
        let answer = reply::bytes(self.step("reserve", &call).await?)?.unwrap_or_default();
        let Told { now, granted, before } = told(&answer).ok_or_else(|| reply::odd("a reservation"))?;
        let (_, answer) = bucket::reserve(&before, wanted, now);
        if granted != matches!(answer, Reserved::Granted { .. }) {
            return Err(reply::odd("what the figures say"));
        }
        Ok(answer)
    }

    pub(super) async fn settle(&self, name: &str, settlement: Settlement) -> Result<Option<Level>> {
        let (reserved, actual) = (settlement.reserved, settlement.actual);
        let sign = if actual <= reserved { "1" } else { "-1" };
        let call = Call::new(&scripts::BUCKET_SETTLE, [self.keys.bucket(name)]);
        let call = call.with(self.now()).with(reserved.abs_diff(actual)).with(sign);
        let answer = self.step(&format!("settle the bucket {name}"), &call).await?;
        Ok(then(answer)?.map(|(before, now)| bucket::settle(before, settlement, now)))
    }

    pub(super) async fn observe(&self, name: &str) -> Result<Option<Level>> {
        let call = Call::new(&scripts::BUCKET_OBSERVE, [self.keys.bucket(name)]).with(self.now());
        let answer = self.step(&format!("look into the bucket {name}"), &call).await?;
        Ok(then(answer)?.map(|(level, now)| bucket::observe(level, now)))
    }

    pub(super) async fn forget_one_bucket(&self, name: &str) -> Result<bool> {
        let mut forget = redis::cmd("DEL");
        forget.arg(self.keys.bucket(name));
        let doing = format!("forget the bucket {name}");
        let answer = self.link.send(&forget).await;
        let gone: u64 = reply::parsed(answer.map_err(|failed| undecided(self.link.name(), &doing, failed))?)?;
        Ok(gone > 0)
    }
}

/// What a bucket was, and when that was asked.
fn then(answer: Value) -> Result<Option<(Level, Time)>> {
    let mut parts = reply::list(answer)?;
    let now = reply::time_at(&mut parts, 0)?;
    let kept = parts.pop().ok_or_else(|| reply::odd("a bucket"))?;
    Ok(level(kept)?.map(|level| (level, now)))
}

/// What is kept of a bucket; `None` when nobody has used it.
fn level(kept: Value) -> Result<Option<Level>> {
    let Some(kept) = reply::bytes(kept)? else { return Ok(None) };
    let level = std::str::from_utf8(&kept).ok().and_then(figures);
    level.map(Some).ok_or_else(|| reply::odd("the figures of a bucket"))
}

/// The figures of a bucket: tokens, carry, time, capacity and rate.
fn figures(kept: &str) -> Option<Level> {
    let mut said = kept.split(' ').map(|digits| digits.parse().ok());
    let mut next = || said.next().flatten();
    let (tokens, carry, at) = (next()?, next()?, Time::from_micros(next()?));
    Some(Level { tokens, carry, at, capacity: next()?, refill_per_s: next()? })
}

/// What the script says of a reservation.
struct Told {
    now: Time,
    granted: bool,
    before: Vec<Option<Level>>,
}

/// Reads `seconds microseconds granted;bucket;bucket`, where a bucket that nobody has used is empty.
fn told(answer: &[u8]) -> Option<Told> {
    let mut parts = std::str::from_utf8(answer).ok()?.split(';');
    let mut head = parts.next()?.split(' ');
    let mut next = || head.next()?.parse::<u64>().ok();
    let (seconds, micros, granted) = (next()?, next()?, next()? == 1);
    let now = Time::from_micros(seconds.checked_mul(1_000_000)?.checked_add(micros)?);
    let bucket = |kept: &str| if kept.is_empty() { Some(None) } else { figures(kept).map(Some) };
    Some(Told { now, granted, before: parts.map(bucket).collect::<Option<_>>()? })
}
