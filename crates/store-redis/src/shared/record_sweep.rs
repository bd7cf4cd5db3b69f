//! Sweeps idempotency records along the index of each shard: removes those that `core` allows to
//! remove. Records that expired unfinished are marked as late and come up again when they may be
//! removed.

use std::time::Duration;

use redis::{Pipeline, cmd};
use tidegate_core::Time;
use tidegate_core::shared::record;
use tidegate_store::Result;

use super::record_swap::Change;
use super::record_value::{HEAD_LEN, RecordHead};
use crate::errors::{check_answers, unusable};
use crate::keys::RECORD_SHARDS;
use crate::{RedisStore, reply};

/// The records that are processed together.
const AT_ONCE: usize = 128;
/// How long until an unreadable record is looked at again.
const UNREADABLE_FOR: Duration = Duration::from_secs(24 * 3_600);

impl RedisStore {
    pub(super) async fn sweep_expired(&self, most: usize) -> Result<usize> {
        let mut swept = 0;
        for shard in 0..RECORD_SHARDS {
            while swept < most {
                let limit = AT_ONCE.min(most - swept);
                let (seen, gone) = self.sweep_some(shard, limit).await?;
                swept += gone;
                if seen < limit {
                    break;
                }
            }
        }
        Ok(swept)
    }

    /// Sweeps the next records of a shard; returns how many it looked at, and how many it removed.
    async fn sweep_some(&self, shard: u64, limit: usize) -> Result<(usize, usize)> {
        let now = self.time().await?;
        let mut ask = cmd("ZRANGEBYSCORE");
        ask.arg(self.keys.record_index(shard))
            .arg("-inf")
            .arg(now.as_micros())
            .arg("LIMIT")
            .arg(0)
            .arg(limit);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let keys: Vec<String> = reply::parsed(answer)?;
        if keys.is_empty() {
            return Ok((0, 0));
        }
        let heads = self.heads(shard, &keys).await?;
        let fates: Vec<_> = heads.iter().map(|head| sweep_decision(head, now)).collect();
        let changes = keys.iter().zip(&heads).zip(&fates);
        let changes: Vec<_> =
            changes.map(|((key, seen), (follows, due))| Change { key, seen, follows, due: *due }).collect();
        let done = self.swap_records("sweep records", shard, &changes).await?;
        let is_gone = |(change, done): &(&Change<'_>, bool)| {
            *done && !change.seen.is_empty() && change.follows.is_empty()
        };
        Ok((keys.len(), changes.iter().zip(done).filter(is_gone).count()))
    }

    /// Reads the heads of these records, empty where there is none.
    async fn heads(&self, shard: u64, keys: &[String]) -> Result<Vec<Vec<u8>>> {
        let records = self.keys.records(shard);
        let mut ask = Pipeline::with_capacity(keys.len());
        for key in keys {
            ask.cmd("GETRANGE").arg(format!("{records}{key}")).arg(0).arg(HEAD_LEN - 1);
        }
        let answers = self
            .connection
            .send_all(&ask)
            .await
            .map_err(|failed| unusable(self.connection.name(), failed))?;
        check_answers(self.connection.name(), answers)?.into_iter().map(reply::parsed).collect()
    }
}

/// The new head, empty to remove it, and its new score. An unreadable record is left as it is and
/// looked at another day: it must not keep the others from being removed.
fn sweep_decision(head: &[u8], now: Time) -> (Vec<u8>, Option<u64>) {
    match RecordHead::parse(head, HEAD_LEN) {
        Ok(Some(kept)) if !record::is_sweepable(&kept.record, now) => {
            let (next, due) = kept.put_off(now);
            (if next == kept { head.to_vec() } else { next.encode() }, Some(due))
        }
        Ok(_) => (Vec::new(), None),
        Err(unreadable) => {
            tracing::warn!("an idempotency record is left alone: {unreadable}");
            (head.to_vec(), Some(now.after(UNREADABLE_FOR).as_micros()))
        }
    }
}
