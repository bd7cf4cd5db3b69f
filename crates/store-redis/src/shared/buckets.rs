//! Stand-alone buckets: a line of text each, because one short value costs the server less than a
//! hash of five. The script takes tokens and returns the state before; the pure function in this
//! process computes what that means for the caller, so that the computation of a delay is never
//! duplicated in another language.

use redis::Value;
use tidegate_core::Time;
use tidegate_core::shared::bucket::{self, Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_store::Result;

use crate::errors::undecided;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, checks, reply};

impl RedisStore {
    pub(super) async fn reserve_all(&self, wanted: &[ReservationRequest]) -> Result<ReserveOutcome> {
        checks::check_unique_names(wanted)?;
        if self.connection.is_cluster() {
            checks::one_family(wanted)?;
        }
        if wanted.is_empty() {
            return Ok(ReserveOutcome::Granted { remaining: Vec::new() });
        }
        let mut call = ScriptCall::new(&scripts::BUCKET_RESERVE, []).with_arg(self.now());
        for want in wanted {
            call.add_key(self.keys.bucket(&want.name));
            call.arg(want.cost).arg(want.capacity).arg(want.refill_per_s);
        }
        let answer = reply::bytes(self.run_script("reserve", &call).await?)?.unwrap_or_default();
        let ReserveReply { now, granted, before } =
            parse_reserve_reply(&answer).ok_or_else(|| reply::unexpected_reply("a reservation"))?;
        let (_, answer) = bucket::reserve(&before, wanted, now);
        if granted != matches!(answer, ReserveOutcome::Granted { .. }) {
            return Err(reply::unexpected_reply("what the figures say"));
        }
        Ok(answer)
    }

    pub(super) async fn settle(&self, name: &str, settlement: Settlement) -> Result<Option<Level>> {
        let (reserved, actual) = (settlement.reserved, settlement.actual);
        let sign = if actual <= reserved { "1" } else { "-1" };
        let call = ScriptCall::new(&scripts::BUCKET_SETTLE, [self.keys.bucket(name)]);
        let call = call.with_arg(self.now()).with_arg(reserved.abs_diff(actual)).with_arg(sign);
        let answer = self.run_script(&format!("settle the bucket {name}"), &call).await?;
        Ok(parse_level_and_time(answer)?.map(|(before, now)| bucket::settle(before, settlement, now)))
    }

    pub(super) async fn observe(&self, name: &str) -> Result<Option<Level>> {
        let call = ScriptCall::new(&scripts::BUCKET_OBSERVE, [self.keys.bucket(name)]).with_arg(self.now());
        let answer = self.run_script(&format!("read the bucket {name}"), &call).await?;
        Ok(parse_level_and_time(answer)?.map(|(level, now)| bucket::observe(level, now)))
    }

    pub(super) async fn forget_one_bucket(&self, name: &str) -> Result<bool> {
        let mut forget = redis::cmd("DEL");
        forget.arg(self.keys.bucket(name));
        let doing = format!("forget the bucket {name}");
        let answer = self.connection.send(&forget).await;
        let gone: u64 =
            reply::parsed(answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?)?;
        Ok(gone > 0)
    }
}

/// The level of a bucket, and when it was read.
fn parse_level_and_time(answer: Value) -> Result<Option<(Level, Time)>> {
    let mut parts = reply::list(answer)?;
    let now = reply::time_at(&mut parts, 0)?;
    let kept = parts.pop().ok_or_else(|| reply::unexpected_reply("a bucket"))?;
    Ok(level(kept)?.map(|level| (level, now)))
}

/// Parses the stored level of a bucket; `None` when it was never used.
fn level(kept: Value) -> Result<Option<Level>> {
    let Some(kept) = reply::bytes(kept)? else { return Ok(None) };
    let level = std::str::from_utf8(&kept).ok().and_then(figures);
    level.map(Some).ok_or_else(|| reply::unexpected_reply("the figures of a bucket"))
}

/// Parses the figures of a bucket: tokens, carry, time, capacity and rate.
fn figures(kept: &str) -> Option<Level> {
    let mut said = kept.split(' ').map(|digits| digits.parse().ok());
    let mut next = || said.next().flatten();
    let (tokens, carry, at) = (next()?, next()?, Time::from_micros(next()?));
    Some(Level { tokens, carry, at, capacity: next()?, refill_per_s: next()? })
}

/// The script's reply to a reservation.
struct ReserveReply {
    now: Time,
    granted: bool,
    before: Vec<Option<Level>>,
}

/// Parses `seconds microseconds granted;bucket;bucket`, where an unused bucket is empty.
fn parse_reserve_reply(answer: &[u8]) -> Option<ReserveReply> {
    let mut parts = std::str::from_utf8(answer).ok()?.split(';');
    let mut head = parts.next()?.split(' ');
    let mut next = || head.next()?.parse::<u64>().ok();
    let (seconds, micros, granted) = (next()?, next()?, next()? == 1);
    let now = Time::from_micros(seconds.checked_mul(1_000_000)?.checked_add(micros)?);
    let bucket = |kept: &str| if kept.is_empty() { Some(None) } else { figures(kept).map(Some) };
    Some(ReserveReply { now, granted, before: parts.map(bucket).collect::<Option<_>>()? })
}
