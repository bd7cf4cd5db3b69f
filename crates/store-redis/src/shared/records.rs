//! Idempotency records: a hash each, spread over shards; each shard has an index of what is completed, by the time it
//! expires. Nothing goes by itself: a fence that starts anew would let a dead holder in.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::record::{Claim, Claimed, Held};
use tidegate_store::Result;

use crate::keys::{RECORD_SHARDS, shard};
use crate::scripts::{self, Call, Script};
use crate::{Redis, reply, span};

/// Records that one script removes.
const SWEPT_AT_ONCE: usize = 128;

impl Redis {
    pub(super) async fn claim(&self, key: &str, claim: Claim) -> Result<Claimed<Bytes>> {
        let call = self.on_record(&scripts::RECORD_CLAIM, key);
        let call = call
            .with(self.now())
            .with(&claim.fingerprint[..])
            .with(span(claim.lease))
            .with(span(claim.ttl))
            .with(key);
        let (word, mut parts) = reply::said(self.step("claim the record", &call).await?)?;
        Ok(match word.as_str() {
            "yours" => {
                let (fence, taken_over): (u64, u8) = (reply::at(&mut parts, 0)?, reply::at(&mut parts, 1)?);
                Claimed::Yours { holder: Held { fence }, taken_over: taken_over == 1 }
            }
            "processing" => Claimed::Processing { until: reply::time_at(&mut parts, 0)? },
            "completed" => {
                let answer = parts.pop().ok_or_else(|| reply::odd("a stored answer"))?;
                Claimed::Completed(reply::bytes(answer)?.unwrap_or_default())
            }
            _ => Claimed::Conflict,
        })
    }

    pub(super) async fn complete(&self, key: &str, holder: Held, answer: &Bytes) -> Result<bool> {
        let call =
            self.on_record(&scripts::RECORD_COMPLETE, key).with(holder.fence).with(&**answer).with(key);
        reply::parsed(self.step("complete the record", &call).await?)
    }

    pub(super) async fn release_claim(&self, key: &str, holder: Held) -> Result<bool> {
        let call = self.on_record(&scripts::RECORD_RELEASE, key).with(holder.fence);
        reply::parsed(self.step("release the record", &call).await?)
    }

    pub(super) async fn renew_claim(&self, key: &str, holder: Held, ttl: Duration) -> Result<bool> {
        let call = self.on_record(&scripts::RECORD_RENEW, key);
        let call = call.with(self.now()).with(holder.fence).with(span(ttl));
        reply::parsed(self.step("renew the record", &call).await?)
    }

    pub(super) async fn sweep_completed(&self, most: usize) -> Result<usize> {
        let mut swept = 0;
        for shard in 0..RECORD_SHARDS {
            while swept < most {
                let limit = SWEPT_AT_ONCE.min(most - swept);
                let call = Call::new(&scripts::RECORD_SWEEP, [self.keys.record_index(shard)])
                    .with(self.now())
                    .with(limit)
                    .with(self.keys.records(shard));
                let gone: usize = reply::parsed(self.step("sweep records", &call).await?)?;
                swept += gone;
                if gone < limit {
                    break;
                }
            }
        }
        Ok(swept)
    }

    fn on_record<'a>(&self, script: &'a Script, key: &str) -> Call<'a> {
        let shard = shard(key);
        Call::new(script, [format!("{}{key}", self.keys.records(shard)), self.keys.record_index(shard)])
    }
}
