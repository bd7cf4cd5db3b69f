//! Idempotency records: a string each, spread over shards; each shard has an index of them by the time a sweep looks at
//! them. What nearly all claims find, nothing or an answer, is one trip of plain commands. None goes by itself: a sweep
//! says how many have gone, and what is in work is not its business.

use std::time::Duration;

use bytes::Bytes;
use redis::{Pipeline, Value, cmd};
use tidegate_core::shared::record::{self, Claim, Claimed, Forget, Forgot, Record, Stage, Token};
use tidegate_store::Result;

use super::record_value::{HEAD_LEN, Kept, held};
use crate::keys::shard;
use crate::link::Failed;
use crate::scripts::{self, Call};
use crate::trouble::{Reach, undecided};
use crate::{Redis, reply};

/// What a claim does, in words.
const CLAIM: &str = "claim the record";

impl Redis {
    pub(super) async fn claim(&self, key: &str, claim: Claim) -> Result<Claimed<Bytes>> {
        let now = self.time().await?;
        let decide = |state| record::claim(state, claim, now);
        let (Some(fresh), granted) = decide(None) else { return Err(reply::odd("a record")) };
        let (fresh, _) = Kept::followed_by(None, fresh);
        let Some(seen) = self.claim_new(key, &fresh).await? else {
            return Ok(with_answer(&granted, &Bytes::new()));
        };
        let (said, seen) = self.step_on_seen(CLAIM, key, seen, &[], decide).await?;
        Ok(with_answer(&said, &seen))
    }

    /// Claims a key that nobody has; otherwise answers what is there. The index comes first: when the trip is cut in
    /// two, an entry without a record is swept away, and a record without one would stay for ever.
    async fn claim_new(&self, key: &str, fresh: &Kept) -> Result<Option<Bytes>> {
        let index = self.keys.record_index(shard(key));
        let mut trip = Pipeline::with_capacity(2);
        trip.cmd("ZADD").arg(&index).arg("NX").arg(fresh.due()).arg(key);
        trip.cmd("SET").arg(self.record(key)).arg(fresh.head()).arg("NX").arg("GET");
        let failed = |failed| undecided(self.link.name(), CLAIM, failed);
        let answers = self.link.send_all(&trip).await.map_err(failed)?;
        let Ok([indexed, seen]) = <[Value; 2]>::try_from(answers) else {
            return Err(reply::odd("two parts"));
        };
        let seen = seen.extract_error().map_err(|cause| failed(Failed { reach: Reach::None, cause }))?;
        let indexed =
            indexed.extract_error().map_err(|cause| failed(Failed { reach: Reach::Perhaps, cause }))?;
        let seen = reply::bytes(seen)?;
        // An entry that was there belonged to a record that has gone since, and may have gone with it.
        if seen.is_none() && indexed == Value::Int(0) {
            let again = self.link.send(cmd("ZADD").arg(&index).arg(fresh.due()).arg(key)).await;
            again.map_err(|Failed { cause, .. }| failed(Failed { reach: Reach::Perhaps, cause }))?;
        }
        Ok(seen)
    }

    pub(super) async fn complete(&self, key: &str, holder: Token, answer: &Bytes) -> Result<bool> {
        const DOING: &str = "complete the record";
        let call = Call::new(&scripts::RECORD_COMPLETE, [self.record(key)]);
        let call = call.with(&held(holder)[..]).with(&**answer);
        if reply::parsed(self.step(DOING, &call).await?)? {
            return Ok(true);
        }
        // Lost, or late.
        let decide = |state| record::complete(state, holder, answer.len());
        self.step_on_record(DOING, key, answer, decide).await
    }

    pub(super) async fn release_claim(&self, key: &str, holder: Token) -> Result<bool> {
        self.step_on_record("release the record", key, &[], |state| record::release(state, holder)).await
    }

    pub(super) async fn renew_claim(&self, key: &str, holder: Token, ttl: Duration) -> Result<bool> {
        let now = self.time().await?;
        let decide = |state| record::renew(state, holder, now, ttl);
        self.step_on_record("renew the record", key, &[], decide).await
    }

    pub(super) async fn forget(&self, key: &str, what: Forget) -> Result<Forgot> {
        let now = self.time().await?;
        self.step_on_record("forget the record", key, &[], |state| record::forget(state, what, now)).await
    }

    pub(super) async fn look_at_record(&self, key: &str) -> Result<Option<Record<Bytes>>> {
        let now = self.time().await?;
        let value = self.value_of_record(key).await?;
        let found = Kept::read(&value, value.len())?.map(|kept| kept.record);
        Ok(found.filter(|found| record::is_live(found, now)).map(|found| {
            let Record { fingerprint, token, created, expires, on_lapse, stage } = found;
            let stage = match stage {
                Stage::Processing { until } => Stage::Processing { until },
                Stage::Completed(_) => Stage::Completed(answer_in(&value)),
            };
            Record { fingerprint, token, created, expires, on_lapse, stage }
        }))
    }
}

/// What came of a claim, with the answer that was seen.
fn with_answer(claimed: &Claimed<usize>, seen: &Bytes) -> Claimed<Bytes> {
    match *claimed {
        Claimed::Yours { taken_over } => Claimed::Yours { taken_over },
        Claimed::Completed(_) => Claimed::Completed(answer_in(seen)),
        Claimed::Processing { until } => Claimed::Processing { until },
        Claimed::Unknown => Claimed::Unknown,
        Claimed::Conflict => Claimed::Conflict,
    }
}

/// What lies behind the head.
fn answer_in(value: &Bytes) -> Bytes {
    value.slice(HEAD_LEN.min(value.len())..)
}
