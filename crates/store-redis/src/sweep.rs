//! Retention: removes results that are too old, with their operations. A scan goes round the
//! batches from where the last one stopped, reads only notes, and removes by a script that checks
//! again. Operations that an archive waits for stay.

use redis::cmd;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::log::{Ownership, Retention};

use crate::entry::Note;
use crate::errors::{undecided, unusable};
use crate::listing::ScannedOperation;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, log, reply};

/// The operations that one call scans.
const SCANNED_MAX: usize = 20_000;
/// The operations that one script removes.
const REMOVED_AT_ONCE: usize = 128;
/// The batches that are read at once.
const BATCHES: usize = 8;

/// A scan round the batches: from where the last one stopped to the end, then from the start.
struct Round {
    from: Seq,
    at: Seq,
    is_second: bool,
    scanned: usize,
}

impl RedisStore {
    pub(crate) async fn sweep_results(&self, owner: Ownership, retention: Retention) -> Result<usize> {
        let from = self.swept_to(owner).await?;
        let mut round = Round { from, at: from, is_second: false, scanned: 0 };
        let mut gone = 0;
        while gone < retention.most && round.scanned < SCANNED_MAX {
            let batches = self.batches_from(owner.partition, round.at).await?;
            if batches.is_empty() {
                if round.is_second || round.from == Seq(0) {
                    round.at = Seq(0);
                    break;
                }
                (round.is_second, round.at) = (true, Seq(0));
                continue;
            }
            let is_round = self.sweep_batches(owner, retention, &batches, &mut round, &mut gone).await?;
            if is_round {
                break;
            }
        }
        self.note_swept(owner.partition, round.at).await?;
        Ok(gone)
    }

    /// Sweeps some batches; returns whether the scan has come round.
    async fn sweep_batches(
        &self,
        owner: Ownership,
        retention: Retention,
        batches: &[(u64, Seq)],
        round: &mut Round,
        gone: &mut usize,
    ) -> Result<bool> {
        let lsns: Vec<u64> = batches.iter().map(|(lsn, _)| *lsn).collect();
        let mut seen = self.scan_batches(owner.partition, &lsns).await?;
        seen.sort_unstable_by_key(|seen| seen.seq);
        for (lsn, first) in batches {
            if round.is_second && *first >= round.from {
                return Ok(true);
            }
            round.at = *first;
            let of_batch = seen.iter().filter(|seen| seen.lsn == *lsn);
            let (mut old, mut kept) = (Vec::new(), 0);
            for seen in of_batch {
                round.scanned += 1;
                if old.len() < retention.most - *gone && is_old(seen, retention)? {
                    old.push(seen);
                } else {
                    kept += 1;
                }
            }
            *gone += self.remove(owner, *lsn, &old).await?;
            if kept == 0 {
                self.forget_batch(owner, *lsn).await?;
            }
            if *gone >= retention.most {
                return Ok(true);
            }
            round.at = Seq(first.0 + 1);
        }
        Ok(false)
    }

    async fn remove(&self, owner: Ownership, lsn: u64, old: &[&ScannedOperation]) -> Result<usize> {
        let mut removed = 0;
        for chunk in old.chunks(REMOVED_AT_ONCE) {
            let partition = owner.partition;
            let keys = [self.keys.head(partition), self.keys.res(partition), self.keys.trail(partition)];
            let mut call = ScriptCall::new(&scripts::SWEEP, keys);
            call.arg(owner.epoch.0).arg(self.keys.batches(partition)).arg(lsn);
            call.arg(self.keys.attempts(partition));
            for seen in chunk {
                call.arg(seen.seq.0).arg(seen.note.as_deref().unwrap_or_default());
            }
            let doing = format!("sweep partition {partition}");
            let answer = call.send(&self.connection).await;
            let answer = answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?;
            let (word, mut parts) = reply::split_verdict(answer)?;
            if word != "ok" {
                return Err(log::fenced(owner, &reply::part_at::<String>(&mut parts, 0)?));
            }
            removed += reply::part_at::<usize>(&mut parts, 0)?;
        }
        Ok(removed)
    }

    async fn forget_batch(&self, owner: Ownership, lsn: u64) -> Result<()> {
        let batch = format!("{}{lsn}", self.keys.batches(owner.partition));
        let keys = [self.keys.head(owner.partition), self.keys.ops(owner.partition), batch];
        let call = ScriptCall::new(&scripts::SWEPT, keys).with_arg(owner.epoch.0).with_arg(lsn);
        call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        Ok(())
    }

    async fn batches_from(&self, partition: Partition, from: Seq) -> Result<Vec<(u64, Seq)>> {
        let mut ask = cmd("ZRANGEBYSCORE");
        ask.arg(self.keys.ops(partition)).arg(from.0).arg("+inf");
        ask.arg("WITHSCORES").arg("LIMIT").arg(0).arg(BATCHES);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let found: Vec<(u64, f64)> = reply::parsed(answer)?;
        Ok(found.into_iter().map(|(lsn, first)| (lsn, Seq(first as u64))).collect())
    }

    /// Where the last scan stopped; also rejects an owner that has been superseded by a newer one.
    async fn swept_to(&self, owner: Ownership) -> Result<Seq> {
        let mut ask = cmd("HMGET");
        ask.arg(self.keys.head(owner.partition)).arg(&["epoch", "swept"]);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let (epoch, swept): (Option<String>, Option<u64>) = reply::parsed(answer)?;
        let epoch = epoch.unwrap_or_default();
        if epoch != owner.epoch.0.to_string() {
            return Err(log::fenced(owner, &epoch));
        }
        Ok(Seq(swept.unwrap_or(0)))
    }

    async fn note_swept(&self, partition: Partition, at: Seq) -> Result<()> {
        let mut note = cmd("HSET");
        note.arg(self.keys.head(partition)).arg("swept").arg(at.0);
        self.connection.send(&note).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        Ok(())
    }
}

fn is_old(seen: &ScannedOperation, retention: Retention) -> Result<bool> {
    let note = seen.note.as_deref().map(Note::parse).transpose()?;
    Ok(note.is_some_and(|note| note.at < retention.ended_before))
}
