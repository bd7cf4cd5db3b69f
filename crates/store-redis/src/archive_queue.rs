//! Ended operations that are not archived yet: a list of notes, one for each append that ended
//! something, written by the append's own script. A note is the append, when the first of them
//! ended, and the seqs: `17 1780000000000000 4711 4712`.

use redis::pipe;
use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};
use tidegate_store::archive_queue::{ArchiveBatch, CostBatch};
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::{ArchiveQueue, Result, StoreFuture};

use crate::errors::{undecided, unreadable};
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, log, reply};

/// A parsed note.
#[derive(Debug, PartialEq, Eq)]
struct ArchiveNote {
    lsn: Lsn,
    oldest: Time,
    seqs: Vec<Seq>,
}

impl ArchiveNote {
    fn parse(note: &str) -> Result<Self> {
        let mut numbers = note.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let (lsn, oldest) = (next(), next());
        let seqs = numbers.map(|seq| seq.map(Seq)).collect();
        match (lsn, oldest, seqs) {
            (Some(lsn), Some(oldest), Ok(seqs)) => {
                Ok(Self { lsn: Lsn(lsn), oldest: Time::from_micros(oldest), seqs })
            }
            _ => Err(unreadable("a note of ended operations is damaged")),
        }
    }
}

impl RedisStore {
    async fn read_ended(&self, partition: Partition, most: usize) -> Result<Option<ArchiveBatch>> {
        let mut ask = pipe();
        ask.cmd("HGET").arg(self.keys.head(partition)).arg("trail");
        ask.cmd("LRANGE").arg(self.keys.trail(partition)).arg(0).arg(most.max(1) - 1);
        let mut answers = self.query_pipeline(&ask).await?;
        let notes: Vec<String> = reply::parsed(answers.pop().unwrap_or_default())?;
        let waiting: Option<u64> = reply::parsed(answers.pop().unwrap_or_default())?;
        let mut noted: Option<ArchiveBatch> = None;
        for note in &notes {
            let step = ArchiveNote::parse(note)?;
            let noted = noted.get_or_insert_with(|| ArchiveBatch {
                seqs: Vec::new(),
                upto: step.lsn,
                oldest: step.oldest,
                waiting: waiting.unwrap_or(0),
            });
            noted.seqs.extend(step.seqs);
            noted.upto = noted.upto.max(step.lsn);
            if noted.seqs.len() >= most {
                break;
            }
        }
        Ok(noted)
    }

    /// Warns when an earlier owner noted ended operations and this one has no archive: they stay in
    /// the queue.
    pub(crate) async fn warn_about_unarchived(&self, partition: Partition) {
        if self.keeps_archive_queue {
            return;
        }
        let asked = self.connection.send(redis::cmd("LLEN").arg(self.keys.trail(partition))).await;
        let appends = asked.ok().and_then(|answer| reply::parsed::<u64>(answer).ok()).unwrap_or(0);
        if appends > 0 {
            let trail = self.keys.trail(partition);
            tracing::warn!(
                trail,
                appends,
                "ended operations wait for an archive that is not configured on this node, and are kept"
            );
        }
    }

    async fn trim_ended(&self, owner: Ownership, upto: Lsn) -> Result<()> {
        let keys = [self.keys.head(owner.partition), self.keys.trail(owner.partition)];
        let call = ScriptCall::new(&scripts::TRODDEN, keys).with_arg(owner.epoch.0).with_arg(upto.0);
        let doing = format!("trim the archive queue of partition {}", owner.partition);
        let answer = call.send(&self.connection).await;
        let answer = answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?;
        let (word, mut parts) = reply::split_verdict(answer)?;
        if word == "ok" { Ok(()) } else { Err(log::fenced(owner, &reply::part_at::<String>(&mut parts, 0)?)) }
    }
}

impl ArchiveQueue for RedisStore {
    fn next_ended(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<ArchiveBatch>> {
        Box::pin(self.read_ended(partition, most))
    }

    fn ack_archived(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()> {
        Box::pin(self.trim_ended(owner, upto))
    }

    fn next_costs(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<CostBatch>> {
        Box::pin(self.read_costs(partition, most))
    }

    fn ack_costs(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()> {
        Box::pin(self.trim_costs(owner, upto))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_and_damaged_ones_refused() {
        let step = ArchiveNote::parse("17 5 4711 4712").unwrap();
        let seqs = vec![Seq(4711), Seq(4712)];
        assert_eq!(step, ArchiveNote { lsn: Lsn(17), oldest: Time::from_micros(5), seqs });
        for damaged in ["", "17", "17 5 x", "a 5 4711", "17 5 4711 "] {
            assert!(ArchiveNote::parse(damaged).is_err(), "{damaged:?}");
        }
    }
}
