//! Idempotency records: a string each, spread over shards; each shard has an index of them by the
//! time a sweep looks at them. What nearly all claims find, nothing or a response, takes one round
//! trip of plain commands. No record expires by itself: a sweep counts what it removes, and does
//! not touch records in flight.

use std::time::Duration;

use bytes::Bytes;
use redis::{Pipeline, Value, cmd};
use tidegate_core::shared::record::{
    self, ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome, RecordStage,
};
use tidegate_store::Result;

use super::record_value::{HEAD_LEN, RecordHead, held_prefix};
use crate::connection::CommandFailure;
use crate::errors::{Delivery, undecided};
use crate::keys::shard;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

/// The action of a claim, for error messages.
const CLAIM: &str = "claim the record";

impl RedisStore {
    pub(super) async fn claim(&self, key: &str, claim: RecordClaim) -> Result<RecordClaimOutcome<Bytes>> {
        let now = self.time().await?;
        let decide = |state| record::claim(state, claim, now);
        let (Some(fresh), granted) = decide(None) else { return Err(reply::unexpected_reply("a record")) };
        let (fresh, _) = RecordHead::followed_by(None, fresh);
        let Some(seen) = self.claim_new(key, &fresh).await? else {
            return Ok(with_answer(&granted, &Bytes::new()));
        };
        let (said, seen) = self.update_seen_record(CLAIM, key, seen, &[], decide).await?;
        Ok(with_answer(&said, &seen))
    }

    /// Claims a key that no one has; otherwise returns what is there. The index is written first:
    /// if the pipeline is cut in two, an entry without a record is swept away, while a record
    /// without an entry would stay for ever.
    async fn claim_new(&self, key: &str, fresh: &RecordHead) -> Result<Option<Bytes>> {
        let index = self.keys.record_index(shard(key));
        let mut trip = Pipeline::with_capacity(2);
        trip.cmd("ZADD").arg(&index).arg("NX").arg(fresh.due()).arg(key);
        trip.cmd("SET").arg(self.record(key)).arg(fresh.encode()).arg("NX").arg("GET");
        let failed = |failed| undecided(self.connection.name(), CLAIM, failed);
        let answers = self.connection.send_all(&trip).await.map_err(failed)?;
        let Ok([indexed, seen]) = <[Value; 2]>::try_from(answers) else {
            return Err(reply::unexpected_reply("two parts"));
        };
        let seen = seen
            .extract_error()
            .map_err(|cause| failed(CommandFailure { delivery: Delivery::NoEffect, cause }))?;
        let indexed = indexed
            .extract_error()
            .map_err(|cause| failed(CommandFailure { delivery: Delivery::Unknown, cause }))?;
        let seen = reply::bytes(seen)?;
        // An existing entry belonged to a record that has been removed since, and may have been
        // removed with it.
        if seen.is_none() && indexed == Value::Int(0) {
            let again = self.connection.send(cmd("ZADD").arg(&index).arg(fresh.due()).arg(key)).await;
            again.map_err(|CommandFailure { cause, .. }| {
                failed(CommandFailure { delivery: Delivery::Unknown, cause })
            })?;
        }
        Ok(seen)
    }

    pub(super) async fn complete(&self, key: &str, holder: HolderToken, answer: &Bytes) -> Result<bool> {
        const DOING: &str = "complete the record";
        let call = ScriptCall::new(&scripts::RECORD_COMPLETE, [self.record(key)]);
        let call = call.with_arg(&held_prefix(holder)[..]).with_arg(&**answer);
        if reply::parsed(self.run_script(DOING, &call).await?)? {
            return Ok(true);
        }
        // Lost, or late.
        let decide = |state| record::complete(state, holder, answer.len());
        self.update_record(DOING, key, answer, decide).await
    }

    pub(super) async fn release_claim(&self, key: &str, holder: HolderToken) -> Result<bool> {
        self.update_record("release the record", key, &[], |state| record::release(state, holder)).await
    }

    pub(super) async fn renew_claim(&self, key: &str, holder: HolderToken, ttl: Duration) -> Result<bool> {
        let now = self.time().await?;
        let decide = |state| record::renew(state, holder, now, ttl);
        self.update_record("renew the record", key, &[], decide).await
    }

    pub(super) async fn forget(&self, key: &str, what: ForgetTarget) -> Result<ForgetOutcome> {
        let now = self.time().await?;
        self.update_record("forget the record", key, &[], |state| record::forget(state, what, now)).await
    }

    pub(super) async fn look_at_record(&self, key: &str) -> Result<Option<Record<Bytes>>> {
        let now = self.time().await?;
        let value = self.read_record_value(key).await?;
        let found = RecordHead::parse(&value, value.len())?.map(|kept| kept.record);
        Ok(found.filter(|found| record::is_live(found, now)).map(|found| {
            let Record { fingerprint, token, created, expires, on_lapse, stage } = found;
            let stage = match stage {
                RecordStage::Processing { until } => RecordStage::Processing { until },
                RecordStage::Completed(_) => RecordStage::Completed(answer_in(&value)),
            };
            Record { fingerprint, token, created, expires, on_lapse, stage }
        }))
    }
}

/// The outcome of a claim, with the response that was seen.
fn with_answer(claimed: &RecordClaimOutcome<usize>, seen: &Bytes) -> RecordClaimOutcome<Bytes> {
    match *claimed {
        RecordClaimOutcome::Granted { taken_over } => RecordClaimOutcome::Granted { taken_over },
        RecordClaimOutcome::Completed(_) => RecordClaimOutcome::Completed(answer_in(seen)),
        RecordClaimOutcome::Processing { until } => RecordClaimOutcome::Processing { until },
        RecordClaimOutcome::Unknown => RecordClaimOutcome::Unknown,
        RecordClaimOutcome::Conflict => RecordClaimOutcome::Conflict,
    }
}

/// The response behind the head.
fn answer_in(value: &Bytes) -> Bytes {
    value.slice(HEAD_LEN.min(value.len())..)
}
