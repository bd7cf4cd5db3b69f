//! Appends: plain commands stage the batch under the owner's epoch, and one short script in the
//! same pipeline commits it, or rejects it and clears it away. Payloads never pass through a
//! script.

use redis::{Pipeline, Value, cmd, pipe};
use tidegate_core::{Seq, id::Partition};
use tidegate_store::log::{Batch, Lsn, Ownership, StoredOperation, StoredResult};
use tidegate_store::{Error, Result, StoreErrorKind, codec};

use crate::connection::CommandFailure;
use crate::errors::{Delivery, undecided};
use crate::scripts::{self, ScriptCall};
use crate::tail::Tail;
use crate::{RedisStore, checks, cost_queue, entry, log, reply};

/// The approximate bytes that one staging command carries.
const STAGED_LEN: usize = 4 * 1024 * 1024;
/// How often a batch is staged again when it was gone before the commit.
const STAGINGS_MAX: usize = 3;
/// How long replicas may take to receive an append, in milliseconds.
const WAIT_MS: u64 = 2_000;

/// A batch ready to be sent.
struct PreparedBatch {
    owner: Ownership,
    first: Option<Seq>,
    /// The staging commands, then the script call.
    pipeline: Pipeline,
}

impl RedisStore {
    pub(crate) async fn append_batch(&self, owner: Ownership, batch: &Batch) -> Result<Lsn> {
        checks::batch(batch)?;
        let tail = self.tails.of(owner);
        if tail.is_unsure() {
            return Err(still_unsure(owner.partition));
        }
        let mut slot = tail.acquire_slot().await;
        let sealed = self.prepare_batch(owner, batch, &tail, slot.number()).inspect_err(|_| slot.settle())?;
        let answer = self.stage_and_commit(&sealed).await;
        let answer = answer.map_err(|failed| {
            if failed.delivery == Delivery::NoEffect {
                slot.settle();
            }
            undecided(self.connection.name(), &format!("append to partition {}", owner.partition), failed)
        })?;
        slot.settle();
        let lsn = outcome(&sealed, batch, &tail, answer)?;
        tail.advance_to(lsn);
        let what = || format!("append {} to partition {}", lsn.0, owner.partition);
        self.wait_for_replicas(&self.keys.head(owner.partition), what).await?;
        Ok(lsn)
    }

    fn prepare_batch(&self, owner: Ownership, batch: &Batch, tail: &Tail, slot: u8) -> Result<PreparedBatch> {
        let (partition, epoch) = (owner.partition, owner.epoch.0);
        let batches = self.keys.batches(partition);
        let (staged, token) = (format!("{batches}{epoch}.{slot}"), tail.token());
        let (mut pipeline, fields) = staging(&staged, &token, batch)?;
        let keys = [self.keys.head(partition), staged, self.keys.ops(partition), self.keys.res(partition)];
        let first = batch.operations.first().map(|operation| operation.seq);
        let last = batch.operations.last().map(|operation| operation.seq);
        let notes_costs = self.keeps_archive_queue && !batch.costs.is_empty();
        let spent = if notes_costs { self.keys.spent(partition) } else { String::new() };
        let costs = if notes_costs { cost_queue::cost_note(&batch.costs)? } else { String::new() };
        let text = |seq: Option<Seq>| seq.map(|seq| seq.0.to_string()).unwrap_or_default();
        let mut call = ScriptCall::new(&scripts::APPEND, keys)
            .with_arg(epoch)
            .with_arg(batch.follows.map(|lsn| lsn.0.to_string()).unwrap_or_default())
            .with_arg(tail.last().0)
            .with_arg(token)
            .with_arg(fields)
            .with_arg(text(first))
            .with_arg(text(last))
            .with_arg(batch.operations.len())
            .with_arg(batches)
            .with_arg(spent)
            .with_arg(costs)
            .with_arg(self.keys.attempts(partition))
            .with_arg(batch.attempts.len())
            .with_arg(batch.reopened.len());
        for seq in &batch.reopened {
            call.arg(seq.0);
        }
        for attempt in &batch.attempts {
            call.arg(attempt.seq.0).arg(entry::attempt_field(attempt)).arg(&*codec::encode_attempt(attempt));
        }
        for result in &batch.results {
            call.arg(result.seq.0).arg(entry::result_note(result));
        }
        if self.keeps_archive_queue && !batch.results.is_empty() {
            call.add_key(self.keys.trail(partition));
            call.arg(entry::archive_note(&batch.results));
        }
        // In full each time: several appends are in flight, and one that had to be sent again
        // because the server forgot its script would arrive after the next one.
        pipeline.add_command(call.in_full());
        Ok(PreparedBatch { owner, first, pipeline })
    }

    /// Stages and commits in one pipeline. A staged batch that was gone is staged again.
    async fn stage_and_commit(&self, sealed: &PreparedBatch) -> std::result::Result<Value, CommandFailure> {
        let mut answer = Value::Nil;
        for _ in 0..STAGINGS_MAX {
            let mut answers = self.connection.send_all(&sealed.pipeline).await?;
            answer = answers.pop().unwrap_or_default();
            let refused = answers.into_iter().find(|answer| matches!(answer, Value::ServerError(_)));
            answer = answer
                .extract_error()
                .map_err(|cause| CommandFailure { delivery: Delivery::NoEffect, cause })?;
            if !is_unstaged(&answer) {
                return Ok(answer);
            }
            if let Some(refused) = refused {
                return refused
                    .extract_error()
                    .map_err(|cause| CommandFailure { delivery: Delivery::NoEffect, cause });
            }
        }
        Ok(answer)
    }

    /// Waits for replicas. What too few replicas have may be lost with its master, so it is not
    /// acknowledged.
    pub(crate) async fn wait_for_replicas(&self, key: &str, what: impl FnOnce() -> String) -> Result<()> {
        let wanted = self.address.wait;
        if wanted == 0 {
            return Ok(());
        }
        let mut wait = cmd("WAIT");
        wait.arg(wanted).arg(WAIT_MS);
        let reached: u32 = match self.connection.send_to(key, wait).await {
            Ok(answer) => reply::parsed(answer)?,
            Err(failed) => {
                let message = format!("{} is written, but it is unknown on how many replicas", what());
                return Err(Error::new(StoreErrorKind::Unsure, message).with_source(failed.cause));
            }
        };
        if reached < wanted {
            let message = format!("{} is on {reached} of {wanted} replicas after {WAIT_MS} ms", what());
            return Err(Error::new(StoreErrorKind::Unsure, message));
        }
        Ok(())
    }
}

/// What a field of a batch holds.
enum Entry<'a> {
    Operation(&'a StoredOperation),
    Result(&'a StoredResult),
}

impl Entry<'_> {
    fn encode(&self, field: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Operation(operation) => entry::encode_operation(operation, field),
            Self::Result(result) => entry::encode_result(result, field),
        }
    }
}

/// The commands that stage a batch, and the number of fields that it then has.
fn staging(staged: &str, token: &str, batch: &Batch) -> Result<(Pipeline, usize)> {
    let mut pipeline = pipe();
    pipeline.cmd("UNLINK").arg(staged);
    let (mut command, mut len) = (cmd("HSET"), 0);
    command.arg(staged).arg("t").arg(token).arg("f").arg(&*codec::encode(&batch.facts));
    let operations = batch.operations.iter().map(|kept| ("o:", kept.seq, Entry::Operation(kept)));
    let results = batch.results.iter().map(|kept| ("r:", kept.seq, Entry::Result(kept)));
    let (mut name, mut field) = (String::new(), Vec::new());
    for (prefix, seq, entry) in operations.chain(results) {
        if len > STAGED_LEN {
            let full = std::mem::replace(&mut command, cmd("HSET"));
            pipeline.add_command(full);
            command.arg(staged);
            len = 0;
        }
        field.clear();
        entry.encode(&mut field)?;
        len += field.len();
        name.clear();
        name.push_str(prefix);
        name.push_str(itoa::Buffer::new().format(seq.0));
        command.arg(&name).arg(&field);
    }
    pipeline.add_command(command);
    let results: std::collections::HashSet<Seq> = batch.results.iter().map(|result| result.seq).collect();
    Ok((pipeline, 2 + batch.operations.len() + results.len()))
}

fn is_unstaged(answer: &Value) -> bool {
    let Value::Array(parts) = answer else { return false };
    matches!(parts.first(), Some(Value::BulkString(word)) if word == b"unstaged")
}

fn outcome(sealed: &PreparedBatch, batch: &Batch, tail: &Tail, answer: Value) -> Result<Lsn> {
    let (word, mut parts) = reply::split_verdict(answer)?;
    let what: String = reply::part_at(&mut parts, 0)?;
    match word.as_str() {
        "ok" => what.parse().map(Lsn).map_err(|_| reply::unexpected_reply("the number of an append")),
        "fenced" => Err(log::fenced(sealed.owner, &what)),
        "lost" => Err(log::lost(sealed.owner, tail.last(), &what)),
        "taken" => Err(checks::seq_taken(sealed.first.unwrap_or_default(), &what)),
        "follows" => {
            let last = what.parse().map_err(|_| reply::unexpected_reply("the number of an append"))?;
            Err(checks::not_following_error(batch.follows.unwrap_or_default(), Lsn(last)))
        }
        _ => {
            let message = format!("the batch for partition {} could not be staged", sealed.owner.partition);
            Err(Error::new(StoreErrorKind::Unavailable, message))
        }
    }
}

fn still_unsure(partition: Partition) -> Error {
    let message = format!(
        "the outcome of an append to partition {partition} is unknown, so nothing more is written until it is acquired again"
    );
    Error::new(StoreErrorKind::Unsure, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_store::Log;

    use super::*;

    /// OPS-8: a batch that is sent again, as a driver does after losing a connection, counts once;
    /// even when others have come after it.
    #[tokio::test]
    async fn ops_8_a_batch_that_is_sent_twice_counts_once() {
        let server = tidegate_fixture::redis::RedisServer::start();
        let store = RedisStore::open(&server.url()).await.unwrap();
        let owner = store.acquire_partition(0, "test", Duration::from_secs(60)).await.unwrap();
        let tail = store.tails.of(owner);
        let after = |lsn| Batch { follows: Some(Lsn(lsn)), ..Batch::default() };
        for (batch, lsn) in [(Batch::default(), 1), (after(1), 2)] {
            let sealed = store.prepare_batch(owner, &batch, &tail, 1).unwrap();
            for _ in 0..3 {
                let answer = store.stage_and_commit(&sealed).await.unwrap();
                assert_eq!(outcome(&sealed, &batch, &tail, answer).unwrap(), Lsn(lsn));
            }
        }
        let early = after(2);
        let sealed = store.prepare_batch(owner, &early, &tail, 1).unwrap();
        for later in [3, 4] {
            let answer = store.stage_and_commit(&sealed).await.unwrap();
            assert_eq!(outcome(&sealed, &early, &tail, answer).unwrap(), Lsn(3));
            assert_eq!(store.append(owner, after(later)).await.unwrap(), Lsn(later + 1));
        }
        assert_eq!(store.load(0, &mut |_| ()).await.unwrap(), Lsn(5));
    }
}
