//! One step on an existing idempotency record, by compare and swap: it is read, the pure function
//! computes the new state, and that is written if the record has not changed since. Whoever was too
//! late reads and decides again.

use bytes::Bytes;
use redis::cmd;
use tidegate_core::shared::record::Record;
use tidegate_store::{Error, Result, StoreErrorKind};

use super::record_value::{HEAD_LEN, RecordHead};
use crate::errors::unusable;
use crate::keys::shard;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

/// How often a step is decided again because others changed the record meanwhile.
const TRIES_MAX: usize = 32;

/// A record that changes, or an entry of the index that is removed.
pub(super) struct Change<'a> {
    pub(super) key: &'a str,
    /// The head that was seen, empty when there was nothing.
    pub(super) seen: &'a [u8],
    /// The new value; empty to remove it.
    pub(super) follows: &'a [u8],
    /// Its score in the index, when that changes.
    pub(super) due: Option<u64>,
}

impl RedisStore {
    /// Runs a step on the current record. `decide` returns what the functions of `core` return;
    /// `answer` is appended to a record that it completes.
    pub(super) async fn update_record<T>(
        &self,
        doing: &str,
        key: &str,
        answer: &[u8],
        decide: impl Fn(Option<Record<usize>>) -> (Option<Record<usize>>, T),
    ) -> Result<T> {
        let seen = self.read_record_value(key).await?;
        Ok(self.update_seen_record(doing, key, seen, answer, decide).await?.0)
    }

    /// Runs a step on a record that was read before; also returns what was seen last.
    pub(super) async fn update_seen_record<T>(
        &self,
        doing: &str,
        key: &str,
        mut seen: Bytes,
        answer: &[u8],
        decide: impl Fn(Option<Record<usize>>) -> (Option<Record<usize>>, T),
    ) -> Result<(T, Bytes)> {
        for _ in 0..TRIES_MAX {
            let head = head_of(&seen);
            let kept = RecordHead::parse(head, seen.len())?;
            let before = kept.as_ref().map(|kept| kept.record.clone());
            let (next, said) = decide(before.clone());
            if next == before {
                return Ok((said, seen));
            }
            let (mut follows, mut due) = (Vec::new(), None);
            if let Some(next) = next {
                let (next, place) = RecordHead::followed_by(kept.as_ref(), next);
                (follows, due) = (next.encode(), place);
                follows.extend_from_slice(answer);
            }
            let change = Change { key, seen: head, follows: &follows, due };
            if self.swap_records(doing, shard(key), &[change]).await? == [true] {
                return Ok((said, seen));
            }
            seen = self.read_record_value(key).await?;
        }
        let message = format!(
            "{} did not {doing}: others changed it {TRIES_MAX} times meanwhile; nothing has changed",
            self.connection.name()
        );
        Err(Error::new(StoreErrorKind::Unavailable, message))
    }

    /// Changes records of one shard, each if it is as it was seen; returns for each whether it was.
    pub(super) async fn swap_records(
        &self,
        doing: &str,
        shard: u64,
        changes: &[Change<'_>],
    ) -> Result<Vec<bool>> {
        let mut call = ScriptCall::new(&scripts::RECORD_SWAP, [self.keys.record_index(shard)]);
        let records = self.keys.records(shard);
        for change in changes {
            call.add_key(format!("{records}{}", change.key));
            let due = change.due.map(|due| due.to_string()).unwrap_or_default();
            call.arg(change.key).arg(change.seen).arg(change.follows).arg(due);
        }
        reply::parsed(self.run_script(doing, &call).await?)
    }

    /// Reads the value of a key, empty when there is none.
    pub(super) async fn read_record_value(&self, key: &str) -> Result<Bytes> {
        let answer = self.connection.send(cmd("GET").arg(self.record(key))).await;
        let answer = answer.map_err(|failed| unusable(self.connection.name(), failed))?;
        Ok(reply::bytes(answer)?.unwrap_or_default())
    }

    /// The key of a record.
    pub(super) fn record(&self, key: &str) -> String {
        format!("{}{key}", self.keys.records(shard(key)))
    }
}

/// The head of a value.
fn head_of(value: &Bytes) -> &[u8] {
    &value[..value.len().min(HEAD_LEN)]
}
