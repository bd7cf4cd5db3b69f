//! Idempotency records: a hash each, spread over shards; each shard has an index of them by the time a sweep looks at
//! them. None goes by itself: a sweep says how many have gone, and what is in work is not its business.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use tidegate_core::Time;
use tidegate_core::shared::record::{
    self, Claim, Claimed, Forget, Forgot, LEFT_BEHIND_FOR, OnLapse, Record, Stage, Token,
};
use tidegate_store::Result;

use crate::keys::{RECORD_SHARDS, shard};
use crate::scripts::{self, Call, Script};
use crate::trouble::unusable;
use crate::{Redis, reply, span};

/// Records that one script removes.
const SWEPT_AT_ONCE: usize = 128;

impl Redis {
    pub(super) async fn claim(&self, key: &str, claim: Claim) -> Result<Claimed<Bytes>> {
        let holds = u8::from(claim.on_lapse == OnLapse::Hold);
        let call = self.on_record(&scripts::RECORD_CLAIM, key);
        let call = call
            .with(self.now())
            .with(&claim.fingerprint[..])
            .with(&claim.token.0[..])
            .with(span(claim.lease))
            .with(span(claim.ttl))
            .with(holds)
            .with(key)
            .with(span(LEFT_BEHIND_FOR));
        let (word, mut parts) = reply::said(self.step("claim the record", &call).await?)?;
        Ok(match word.as_str() {
            "yours" => Claimed::Yours { taken_over: false },
            "taken over" => Claimed::Yours { taken_over: true },
            "processing" => Claimed::Processing { until: reply::time_at(&mut parts, 0)? },
            "completed" => {
                let answer = parts.pop().ok_or_else(|| reply::odd("a stored answer"))?;
                Claimed::Completed(reply::bytes(answer)?.unwrap_or_default())
            }
            "unknown" => Claimed::Unknown,
            "conflict" => Claimed::Conflict,
            _ => return Err(reply::odd("what came of a claim")),
        })
    }

    pub(super) async fn complete(&self, key: &str, holder: Token, answer: &Bytes) -> Result<bool> {
        let call = self.on_record(&scripts::RECORD_COMPLETE, key);
        let call = call.with(&holder.0[..]).with(&**answer).with(key);
        reply::parsed(self.step("complete the record", &call).await?)
    }

    pub(super) async fn release_claim(&self, key: &str, holder: Token) -> Result<bool> {
        let call = self.on_record(&scripts::RECORD_RELEASE, key).with(&holder.0[..]).with(key);
        reply::parsed(self.step("release the record", &call).await?)
    }

    pub(super) async fn renew_claim(&self, key: &str, holder: Token, ttl: Duration) -> Result<bool> {
        let call = self.on_record(&scripts::RECORD_RENEW, key).with(self.now()).with(&holder.0[..]);
        let call = call.with(span(ttl)).with(key).with(span(LEFT_BEHIND_FOR));
        reply::parsed(self.step("renew the record", &call).await?)
    }

    pub(super) async fn forget(&self, key: &str, what: Forget) -> Result<Forgot> {
        let what = match what {
            Forget::Claim => "claim",
            Forget::Answer => "answer",
        };
        let call = self.on_record(&scripts::RECORD_FORGET, key).with(self.now()).with(what).with(key);
        let said: String = reply::parsed(self.step("forget the record", &call).await?)?;
        match said.as_str() {
            "gone" => Ok(Forgot::Gone),
            "absent" => Ok(Forgot::Absent),
            "otherwise" => Ok(Forgot::Otherwise),
            _ => Err(reply::odd("what came of forgetting")),
        }
    }

    pub(super) async fn look_at_record(&self, key: &str) -> Result<Option<Record<Bytes>>> {
        let call = Call::new(&scripts::RECORD_LOOK, [self.record(key)]).with(self.now());
        let answer = call.send(&self.link).await.map_err(|failed| unusable(self.link.name(), failed))?;
        let mut parts = reply::list(answer)?;
        let now = reply::time_at(&mut parts, 0)?;
        let answer = parts.pop().map(reply::bytes).transpose()?.flatten();
        let found = read(&mut parts[1..], answer.unwrap_or_default())?;
        Ok(found.filter(|found| record::is_live(found, now)))
    }

    pub(super) async fn sweep_expired(&self, most: usize) -> Result<usize> {
        let mut swept = 0;
        for shard in 0..RECORD_SHARDS {
            while swept < most {
                let limit = SWEPT_AT_ONCE.min(most - swept);
                let call = Call::new(&scripts::RECORD_SWEEP, [self.keys.record_index(shard)])
                    .with(self.now())
                    .with(limit)
                    .with(self.keys.records(shard))
                    .with(span(LEFT_BEHIND_FOR));
                let (seen, gone): (usize, usize) = reply::parsed(self.step("sweep records", &call).await?)?;
                swept += gone;
                if seen < limit {
                    break;
                }
            }
        }
        Ok(swept)
    }

    fn record(&self, key: &str) -> String {
        format!("{}{key}", self.keys.records(shard(key)))
    }

    fn on_record<'a>(&self, script: &'a Script, key: &str) -> Call<'a> {
        Call::new(script, [self.record(key), self.keys.record_index(shard(key))])
    }
}

/// The record of `print`, `token`, `created`, `expires`, `until` and `holds`; none when there is none.
pub(super) fn read<A>(fields: &mut [Value], answer: A) -> Result<Option<Record<A>>> {
    if fields.first().is_none_or(|first| *first == Value::Nil) {
        return Ok(None);
    }
    let until: String = reply::at(fields, 4)?;
    let stage = if until.is_empty() {
        Stage::Completed(answer)
    } else {
        let until = until.parse().map_err(|_| reply::odd("a time"))?;
        Stage::Processing { until: Time::from_micros(until) }
    };
    Ok(Some(Record {
        fingerprint: exactly(fields, 0)?,
        token: Token(exactly(fields, 1)?),
        created: reply::time_at(fields, 2)?,
        expires: reply::time_at(fields, 3)?,
        on_lapse: if reply::at::<u8>(fields, 5)? == 1 { OnLapse::Hold } else { OnLapse::TakeOver },
        stage,
    }))
}

/// So many bytes at a place.
fn exactly<const N: usize>(fields: &mut [Value], place: usize) -> Result<[u8; N]> {
    let found: Vec<u8> = reply::at(fields, place)?;
    found.try_into().map_err(|_| reply::odd("the bytes of a record"))
}
