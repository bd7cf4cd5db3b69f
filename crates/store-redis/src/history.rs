//! Replays a partition: the parts of the snapshot and every later append, read in pages. Nothing is
//! skipped silently: a missing append makes the partition unreadable, unless a newer snapshot has
//! just replaced it.

use bytes::Bytes;
use redis::pipe;
use tidegate_core::id::Partition;
use tidegate_store::log::{Lsn, Replay};
use tidegate_store::{Error, Result, StoreErrorKind, codec};

use crate::errors::{check_answers, unreadable, unusable};
use crate::{RedisStore, reply};

/// The appends that are read at once.
const APPENDS: u64 = 256;
/// The parts of a snapshot that are read at once.
const PARTS: u64 = 16;
/// The bytes that are buffered before the first are passed on. Until then reading can restart.
const HELD_LEN_MAX: usize = 64 * 1024 * 1024;
/// How often reading restarts when a snapshot replaces what is being read.
const STARTS_MAX: usize = 20;

/// Where reading starts and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outline {
    last: Lsn,
    /// The name of the snapshot; empty when there is none.
    snapshot: String,
    upto: Lsn,
    parts: u64,
}

/// The result of reading one page.
enum PageRead {
    Page(Vec<Bytes>),
    /// A newer snapshot replaced what was to be read.
    Replaced,
}

/// What has been read and not yet passed on.
struct ReplayBuffer<'a> {
    replay: Replay<'a>,
    pages: Vec<Bytes>,
    len: usize,
    is_begun: bool,
}

impl ReplayBuffer<'_> {
    fn push(&mut self, page: Vec<Bytes>) -> Result<()> {
        self.len += page.iter().map(Bytes::len).sum::<usize>();
        self.pages.extend(page);
        if self.len > HELD_LEN_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.is_begun = true;
        self.len = 0;
        for part in self.pages.drain(..) {
            (self.replay)(codec::decode(&part)?);
        }
        Ok(())
    }
}

impl RedisStore {
    pub(crate) async fn replay(&self, partition: Partition, replay: Replay<'_>) -> Result<Lsn> {
        let mut held = ReplayBuffer { replay, pages: Vec::new(), len: 0, is_begun: false };
        for _ in 0..STARTS_MAX {
            let Some(outline) = self.outline(partition).await? else { return Ok(Lsn(0)) };
            if self.collect(partition, &outline, &mut held).await? {
                held.flush()?;
                self.tails.advance_partition(partition, outline.last);
                return Ok(outline.last);
            }
            if held.is_begun {
                break;
            }
            held.pages.clear();
            held.len = 0;
        }
        let message = format!("partition {partition} got a new snapshot while it was read; read it again");
        Err(Error::new(StoreErrorKind::Unavailable, message))
    }

    /// Reads page by page; returns `false` when a newer snapshot interfered.
    async fn collect(
        &self,
        partition: Partition,
        outline: &Outline,
        held: &mut ReplayBuffer<'_>,
    ) -> Result<bool> {
        for start in (0..outline.parts).step_by(PARTS as usize) {
            match self.parts(partition, outline, start).await? {
                PageRead::Page(page) => held.push(page)?,
                PageRead::Replaced => return Ok(false),
            }
        }
        let mut after = outline.upto;
        while after < outline.last {
            let upto = Lsn(outline.last.0.min(after.0 + APPENDS));
            match self.appends(partition, outline, after, upto).await? {
                PageRead::Page(page) => held.push(page)?,
                PageRead::Replaced => return Ok(false),
            }
            after = upto;
        }
        Ok(true)
    }

    /// Reads the outline; `None` when the partition was never owned.
    async fn outline(&self, partition: Partition) -> Result<Option<Outline>> {
        let mut ask = redis::cmd("HMGET");
        ask.arg(self.keys.head(partition)).arg(&["last", "snapshot", "upto", "parts"]);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        type RangeReply = (Option<u64>, Option<String>, Option<u64>, Option<u64>);
        let (last, snapshot, upto, parts): RangeReply = reply::parsed(answer)?;
        Ok(last.map(|last| Outline {
            last: Lsn(last),
            snapshot: snapshot.unwrap_or_default(),
            upto: Lsn(upto.unwrap_or(0)),
            parts: parts.unwrap_or(0),
        }))
    }

    async fn parts(&self, partition: Partition, outline: &Outline, start: u64) -> Result<PageRead> {
        let stop = outline.parts.min(start + PARTS);
        let name = format!("{}{}", self.keys.snapshots(partition), outline.snapshot);
        let mut ask = pipe();
        ask.cmd("LRANGE").arg(name).arg(start).arg(stop - 1);
        ask.cmd("HGET").arg(self.keys.head(partition)).arg("snapshot");
        let mut answers = self.query_pipeline(&ask).await?;
        let now: Option<String> = reply::part_at(&mut answers, 1)?;
        let found = reply::list(answers.swap_remove(0))?;
        let page = found.into_iter().filter_map(|part| reply::bytes(part).transpose());
        let page = page.collect::<Result<Vec<_>>>()?;
        if now.as_deref() != Some(outline.snapshot.as_str()) {
            return Ok(PageRead::Replaced);
        }
        if page.len() as u64 != stop - start {
            let message = format!("partition {partition} is damaged: a part of its snapshot is missing");
            return Err(unreadable(message));
        }
        Ok(PageRead::Page(page))
    }

    /// Reads the appends after `after` up to `upto`. Whether they were replaced is checked after
    /// them.
    async fn appends(
        &self,
        partition: Partition,
        outline: &Outline,
        after: Lsn,
        upto: Lsn,
    ) -> Result<PageRead> {
        let batches = self.keys.batches(partition);
        let mut ask = pipe();
        for lsn in after.0 + 1..=upto.0 {
            ask.cmd("HGET").arg(format!("{batches}{lsn}")).arg("f");
        }
        ask.cmd("HGET").arg(self.keys.head(partition)).arg("snapshot");
        let mut answers = self.query_pipeline(&ask).await?;
        let now: Option<String> = reply::parsed(answers.pop().unwrap_or_default())?;
        if now.unwrap_or_default() != outline.snapshot {
            return Ok(PageRead::Replaced);
        }
        let mut page = Vec::with_capacity(answers.len());
        for (lsn, answer) in (after.0 + 1..).zip(answers) {
            let facts = reply::bytes(answer)?.ok_or_else(|| {
                unreadable(format!("partition {partition} is damaged: append {lsn} is missing"))
            })?;
            page.push(facts);
        }
        Ok(PageRead::Page(page))
    }

    /// Runs a pipeline that only reads.
    pub(crate) async fn query_pipeline(&self, ask: &redis::Pipeline) -> Result<Vec<redis::Value>> {
        let answers =
            self.connection.send_all(ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        check_answers(self.connection.name(), answers)
    }
}
