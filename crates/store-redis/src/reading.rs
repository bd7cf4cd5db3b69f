//! Reads operations by seq. The batch that holds one is the last that starts at or before it; the
//! location of its result has been noted. Two round trips, whatever the number. Without results,
//! the operations of one batch are read together.

use std::collections::BTreeMap;

use redis::{Value, pipe};
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{StoredEntry, StoredOperation};

use crate::checks::within_scores;
use crate::entry::{self, Note};
use crate::{RedisStore, reply};

/// The operations that are read at once.
const PAGE: usize = 256;

/// The location of an operation and its result.
#[derive(Clone, Debug, Default)]
struct OperationLocation {
    lsn: Option<String>,
    ended: Option<u64>,
}

impl RedisStore {
    pub(crate) async fn read_all(
        &self,
        partition: Partition,
        seqs: &[Seq],
    ) -> Result<Vec<Option<StoredEntry>>> {
        let mut found = Vec::with_capacity(seqs.len());
        for page in seqs.chunks(PAGE) {
            let places = self.places(partition, page).await?;
            found.extend(self.stored(partition, page, &places).await?);
        }
        Ok(found)
    }

    async fn places(&self, partition: Partition, seqs: &[Seq]) -> Result<Vec<OperationLocation>> {
        let ops = self.keys.ops(partition);
        let mut ask = pipe();
        for seq in seqs {
            let newest = within_scores(*seq).0;
            ask.cmd("ZREVRANGEBYSCORE").arg(&ops).arg(newest).arg("-inf").arg("LIMIT").arg(0).arg(1);
        }
        ask.cmd("HMGET").arg(self.keys.res(partition));
        for seq in seqs {
            ask.arg(seq.0);
        }
        let mut answers = self.query_pipeline(&ask).await?;
        let notes: Vec<Option<String>> = reply::parsed(answers.pop().unwrap_or_default())?;
        let mut places = Vec::with_capacity(seqs.len());
        for (answer, note) in answers.into_iter().zip(notes) {
            let lsn = reply::parsed::<Vec<String>>(answer)?.pop();
            let ended = note.as_deref().map(Note::parse).transpose()?.map(|note| note.lsn);
            places.push(OperationLocation { lsn, ended });
        }
        Ok(places)
    }

    async fn stored(
        &self,
        partition: Partition,
        seqs: &[Seq],
        places: &[OperationLocation],
    ) -> Result<Vec<Option<StoredEntry>>> {
        let batches = self.keys.batches(partition);
        let mut ask = pipe();
        for (seq, place) in seqs.iter().zip(places) {
            let lsn = place.lsn.as_deref().unwrap_or_default();
            ask.cmd("HGET").arg(format!("{batches}{lsn}")).arg(format!("o:{}", seq.0));
            let ended = place.ended.map(|lsn| lsn.to_string()).unwrap_or_default();
            ask.cmd("HGET").arg(format!("{batches}{ended}")).arg(format!("r:{}", seq.0));
        }
        if ask.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.query_pipeline(&ask).await?.into_iter();
        let mut next = || reply::bytes(answers.next().unwrap_or(Value::Nil));
        let mut found = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let (operation, result) = (next()?, next()?);
            let operation = operation.map(|kept| entry::decode_operation(*seq, &kept)).transpose()?;
            let result = result.map(|kept| entry::decode_result(*seq, &kept)).transpose()?;
            found.push(operation.map(|operation| StoredEntry { operation, result }));
        }
        Ok(found)
    }

    /// Reads the attempts of operations, by fence.
    pub(crate) async fn attempts_of(
        &self,
        partition: Partition,
        seqs: &[Seq],
    ) -> Result<Vec<Vec<StoredAttempt>>> {
        let prefix = self.keys.attempts(partition);
        let mut found = Vec::with_capacity(seqs.len());
        for page in seqs.chunks(PAGE) {
            let mut ask = pipe();
            for seq in page {
                ask.cmd("HGETALL").arg(format!("{prefix}{}", seq.0));
            }
            for (seq, answer) in page.iter().zip(self.query_pipeline(&ask).await?) {
                let rows: BTreeMap<String, Vec<u8>> = reply::parsed(answer)?;
                found.push(entry::decode_attempts(*seq, &rows)?);
            }
        }
        Ok(found)
    }

    /// Reads operations without results.
    pub(crate) async fn read_operations(
        &self,
        partition: Partition,
        seqs: &[Seq],
    ) -> Result<Vec<Option<StoredOperation>>> {
        let mut sorted = seqs.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut found = BTreeMap::new();
        for page in sorted.chunks(PAGE) {
            let batches = self.batches_of(partition, page).await?;
            self.gather_operations(partition, &batches, &mut found).await?;
        }
        Ok(seqs.iter().map(|seq| found.get(seq).cloned()).collect())
    }

    /// Maps these seqs, in order, to their batches. Where a few batches hold all of them, one reply
    /// is enough.
    async fn batches_of(&self, partition: Partition, seqs: &[Seq]) -> Result<BTreeMap<String, Vec<Seq>>> {
        let mut batches: BTreeMap<String, Vec<Seq>> = BTreeMap::new();
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { return Ok(batches) };
        let (first, last) = (within_scores(*first).0, within_scores(*last).0);
        let ops = self.keys.ops(partition);
        let mut ask = pipe();
        ask.cmd("ZREVRANGEBYSCORE").arg(&ops).arg(first).arg("-inf").arg("WITHSCORES");
        ask.arg("LIMIT").arg(0).arg(1);
        ask.cmd("ZRANGEBYSCORE").arg(&ops).arg(format!("({first}")).arg(last).arg("WITHSCORES");
        ask.arg("LIMIT").arg(0).arg(PAGE);
        let mut answers = self.query_pipeline(&ask).await?.into_iter();
        let mut next = || reply::parsed::<Vec<(String, u64)>>(answers.next().unwrap_or_default());
        let (mut starts, later) = (next()?, next()?);
        let is_cut = later.len() == PAGE;
        starts.extend(later);
        // There may be others behind the last start in the reply.
        let known = starts.last().filter(|_| is_cut).map_or(u64::MAX, |(_, start)| *start);
        let (near, far) = seqs.split_at(seqs.partition_point(|seq| seq.0 <= known));
        for seq in near {
            let place = starts.partition_point(|(_, start)| *start <= seq.0);
            if let Some((lsn, _)) = place.checked_sub(1).and_then(|place| starts.get(place)) {
                batches.entry(lsn.clone()).or_default().push(*seq);
            }
        }
        if !far.is_empty() {
            for (seq, place) in far.iter().zip(self.places(partition, far).await?) {
                batches.entry(place.lsn.unwrap_or_default()).or_default().push(*seq);
            }
        }
        Ok(batches)
    }

    async fn gather_operations(
        &self,
        partition: Partition,
        batches: &BTreeMap<String, Vec<Seq>>,
        found: &mut BTreeMap<Seq, StoredOperation>,
    ) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let prefix = self.keys.batches(partition);
        let mut ask = pipe();
        for (lsn, seqs) in batches {
            ask.cmd("HMGET").arg(format!("{prefix}{lsn}"));
            for seq in seqs {
                ask.arg(format!("o:{}", seq.0));
            }
        }
        for (seqs, answer) in batches.values().zip(self.query_pipeline(&ask).await?) {
            for (seq, kept) in seqs.iter().zip(reply::list(answer)?) {
                if let Some(kept) = reply::bytes(kept)? {
                    found.insert(*seq, entry::decode_operation(*seq, &kept)?);
                }
            }
        }
        Ok(())
    }
}
