//! Pages of operations, newest first. Batches are scanned backwards; only names and notes are read
//! until an operation may belong to the page, and then its line without the payload.

use std::cmp::Reverse;
use std::collections::VecDeque;

use bytes::Bytes;
use redis::pipe;
use tidegate_core::Seq;
use tidegate_core::bounds::LIST_SCANNED_MAX;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::log::{StoredEntry, StoredPage, StoredQuery};

use crate::checks::within_scores;
use crate::entry::{self, Note};
use crate::errors::unusable;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

/// The batches that are read at once.
const BATCHES: usize = 8;
/// The operations that one call of the script scans.
const LINES: usize = 128;

/// An operation that was seen in a batch, and how it ended.
pub(crate) struct ScannedOperation {
    pub(crate) seq: Seq,
    pub(crate) lsn: u64,
    /// The stored note, so that a change is noticed.
    pub(crate) note: Option<String>,
}

/// A scan over the operations below a seq, newest first.
struct ListScan {
    partition: Partition,
    /// Everything below this is still to be scanned.
    before: Seq,
    ahead: VecDeque<ScannedOperation>,
}

impl RedisStore {
    pub(crate) async fn page(&self, partition: Partition, query: &StoredQuery) -> Result<StoredPage> {
        let before = within_scores(query.before.unwrap_or(Seq(u64::MAX)));
        let mut walk = ListScan { partition, before, ahead: VecDeque::new() };
        let (mut page, mut scanned) = (StoredPage::default(), 0);
        let mut looked_at = None;
        loop {
            let is_over = page.items.len() >= query.limit || scanned >= LIST_SCANNED_MAX;
            let most = if is_over { 1 } else { LINES.min(LIST_SCANNED_MAX - scanned) };
            let stretch = self.next(&mut walk, most).await?;
            if is_over || stretch.is_empty() {
                page.next = looked_at.filter(|_| !stretch.is_empty());
                return Ok(page);
            }
            scanned += stretch.len();
            let (found, stopped) =
                self.find_matching(partition, query, &stretch, query.limit - page.items.len()).await?;
            page.items.extend(found);
            looked_at = Some(stopped);
            walk.return_below(stopped, stretch);
        }
    }

    /// The next operations of a scan, at most `most`, of one batch.
    async fn next(&self, walk: &mut ListScan, most: usize) -> Result<Vec<ScannedOperation>> {
        while walk.ahead.is_empty() {
            let below = self.batches_before(walk.partition, walk.before).await?;
            let Some(lowest) = below.last().map(|(_, first)| *first) else { return Ok(Vec::new()) };
            let lsns: Vec<u64> = below.into_iter().map(|(lsn, _)| lsn).collect();
            let mut seen = self.scan_batches(walk.partition, &lsns).await?;
            seen.retain(|seen| seen.seq < walk.before);
            seen.sort_unstable_by_key(|seen| Reverse(seen.seq));
            walk.ahead = seen.into();
            walk.before = lowest;
        }
        let lsn = walk.ahead.front().map(|seen| seen.lsn);
        let mut stretch = Vec::new();
        while stretch.len() < most
            && let Some(seen) = walk.ahead.pop_front_if(|seen| Some(seen.lsn) == lsn)
        {
            stretch.push(seen);
        }
        Ok(stretch)
    }

    /// The batches that begin below a seq, newest first, each with its first seq.
    async fn batches_before(&self, partition: Partition, before: Seq) -> Result<Vec<(u64, Seq)>> {
        let mut ask = redis::cmd("ZREVRANGEBYSCORE");
        ask.arg(self.keys.ops(partition)).arg(format!("({}", before.0)).arg("-inf");
        ask.arg("WITHSCORES").arg("LIMIT").arg(0).arg(BATCHES);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let found: Vec<(u64, f64)> = reply::parsed(answer)?;
        Ok(found.into_iter().map(|(lsn, first)| (lsn, Seq(first as u64))).collect())
    }

    /// The operations of batches, with the notes of their results.
    pub(crate) async fn scan_batches(
        &self,
        partition: Partition,
        lsns: &[u64],
    ) -> Result<Vec<ScannedOperation>> {
        let batches = self.keys.batches(partition);
        let mut ask = pipe();
        for lsn in lsns {
            ask.cmd("HKEYS").arg(format!("{batches}{lsn}"));
        }
        let mut seen = Vec::new();
        for (lsn, names) in lsns.iter().zip(self.query_pipeline(&ask).await?) {
            let names: Vec<String> = reply::parsed(names)?;
            let seqs = names.iter().filter_map(|name| name.strip_prefix("o:")?.parse().ok().map(Seq));
            seen.extend(seqs.map(|seq| ScannedOperation { seq, lsn: *lsn, note: None }));
        }
        if seen.is_empty() {
            return Ok(seen);
        }
        let mut ask = pipe();
        for chunk in seen.chunks(LINES) {
            ask.cmd("HMGET").arg(self.keys.res(partition));
            for seen in chunk {
                ask.arg(seen.seq.0);
            }
        }
        let mut notes = Vec::with_capacity(seen.len());
        for answer in self.query_pipeline(&ask).await? {
            notes.extend(reply::parsed::<Vec<Option<String>>>(answer)?);
        }
        for (seen, note) in seen.iter_mut().zip(notes) {
            seen.note = note;
        }
        Ok(seen)
    }

    /// The operations in a stretch of one batch that match the query, at most `most`, and the last
    /// seq that was scanned.
    async fn find_matching(
        &self,
        partition: Partition,
        query: &StoredQuery,
        stretch: &[ScannedOperation],
        most: usize,
    ) -> Result<(Vec<StoredEntry>, Seq)> {
        let is_whole = query.group.is_none() && query.kind.is_none();
        let mut wanted = Vec::new();
        for seen in stretch {
            let ended = seen.note.as_deref().map(Note::parse).transpose()?.map(|note| note.ended);
            if query.ended.is_none_or(|wanted| ended == Some(wanted)) {
                wanted.push(seen);
            }
        }
        if is_whole {
            wanted.truncate(most);
        }
        let mut found = self.lines(partition, query, &wanted).await?;
        let bottom = stretch.last().map(|seen| seen.seq).unwrap_or_default();
        if found.len() < most && !(is_whole && wanted.len() == most) {
            return Ok((found, bottom));
        }
        found.truncate(most);
        let stopped = found.last().map(|stored| stored.operation.seq);
        Ok((found, stopped.unwrap_or_else(|| wanted.last().map_or(bottom, |seen| seen.seq))))
    }

    async fn lines(
        &self,
        partition: Partition,
        query: &StoredQuery,
        wanted: &[&ScannedOperation],
    ) -> Result<Vec<StoredEntry>> {
        let Some(first) = wanted.first() else { return Ok(Vec::new()) };
        let batches = self.keys.batches(partition);
        let batch = format!("{batches}{}", first.lsn);
        let group = query.group.as_deref().map(entry::mark_of_group).transpose()?.unwrap_or_default();
        let kind = query.kind.as_deref().map(entry::mark_of_kind).transpose()?.unwrap_or_default();
        let mut call = ScriptCall::new(&scripts::OUTLINE, [batch, self.keys.res(partition)]);
        call.arg(batches).arg(group).arg(kind);
        for seen in wanted {
            call.arg(seen.seq.0);
        }
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let mut parts = reply::list(answer)?.into_iter();
        let mut found = Vec::new();
        while let (Some(seq), Some(line), Some(ended)) = (parts.next(), parts.next(), parts.next()) {
            let seq = reply::parsed::<u64>(seq).map(Seq)?;
            let operation = entry::decode_operation(seq, &reply::bytes(line)?.unwrap_or_default())?;
            let ended = reply::bytes(ended)?.filter(|line: &Bytes| !line.is_empty());
            let result = ended.map(|line| entry::decode_result(seq, &line)).transpose()?;
            let stored = StoredEntry { operation, result };
            if matches_query(query, &stored) {
                found.push(stored);
            }
        }
        Ok(found)
    }
}

impl ListScan {
    /// Puts back what is below the last one that was scanned.
    fn return_below(&mut self, stopped: Seq, stretch: Vec<ScannedOperation>) {
        for seen in stretch.into_iter().rev().filter(|seen| seen.seq < stopped) {
            self.ahead.push_front(seen);
        }
    }
}

/// The script only looks for marks; this is the decision.
fn matches_query(query: &StoredQuery, stored: &StoredEntry) -> bool {
    let ended = stored.result.as_ref().map(|result| result.state);
    query.group.as_ref().is_none_or(|group| *group == stored.operation.group)
        && query.kind.as_ref().is_none_or(|kind| *kind == stored.operation.kind)
        && query.ended.is_none_or(|wanted| ended == Some(wanted))
}
