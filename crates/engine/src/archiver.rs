//! Copies what ended to the archive: reads the trail, keeps the operations there, then shortens the trail. Whatever breaks
//! in between is done again, and twice is once. Nothing waits for it, and it decides nothing.

mod outage;

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::{Ownership, Stored};
use tidegate_store::trail::Noted;
use tidegate_store::{Error as StoreError, Kind, Store, Trail};
use tokio::sync::{Notify, watch};

use crate::error::Error;
pub use outage::Archiving;

/// Operations that are taken from the trail in one round, about.
const ROUND: usize = 256;
/// Costs that are taken in one round, about.
const ROUND_OF_COSTS: usize = 1_000;
/// Operations that are read at once to begin with; how many follow goes by how large they were.
const FIRST: usize = 16;
/// Bytes of payloads and answers that are held at once, about.
const HELD_LEN: usize = 4 * 1024 * 1024;
/// After something ended this much more is waited for, so that many are kept in one step.
const GATHER: Duration = Duration::from_millis(100);
/// How often the trail is looked at when nobody said that something ended.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Between two tries, at first and at the most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// What ended and is not in the archive yet, as it was last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many.
    pub waiting: u64,
    /// When the first of them ended.
    pub oldest: Option<Time>,
}

/// The archiver of one partition.
pub(crate) struct Archiver {
    pub store: Arc<dyn Store>,
    pub archiving: Archiving,
    pub partition: Partition,
    pub tenure: watch::Receiver<Ownership>,
    pub stopped: watch::Receiver<Option<Error>>,
    /// Told when something ended.
    pub ended: Arc<Notify>,
    pub backlog: watch::Sender<Backlog>,
}

/// What a round did.
struct Copied {
    operations: usize,
    costs: usize,
}

/// What it remembers from one round to the next.
struct Progress {
    is_laid_out: bool,
    at_once: usize,
    failures: u32,
}

impl Archiver {
    /// Works until the engine stops.
    pub(crate) async fn work(self) {
        self.copy_on().await;
        self.archiving.outage.leave(self.partition);
    }

    async fn copy_on(&self) {
        let mut stopped = self.stopped.clone();
        let mut progress = Progress { is_laid_out: false, at_once: FIRST, failures: 0 };
        while stopped.borrow().is_none() {
            let rest = match self.round(&mut progress).await {
                Ok(Copied { operations, costs }) => {
                    progress.failures = 0;
                    if self.archiving.outage.ends(self.partition) {
                        tracing::info!("what ended is archived again");
                    }
                    if operations + costs > 0 {
                        metrics::counter!("tidegate_archived_total").increment(operations as u64);
                        continue;
                    }
                    None
                }
                Err(error) => Some(self.failed(&error, &mut progress)),
            };
            tokio::select! {
                _ = stopped.wait_for(Option::is_some) => return,
                () = self.rest(rest) => {}
            }
        }
    }

    /// Waits out a failure, or until there may be something to do.
    async fn rest(&self, failed: Option<Duration>) {
        match failed {
            Some(pause) => tokio::time::sleep(pause).await,
            None => {
                // Whether somebody told or the time is over, it looks.
                let _ = tokio::time::timeout(LOOK_EVERY, self.ended.notified()).await;
                tokio::time::sleep(GATHER).await;
            }
        }
    }

    /// Copies some of what is noted; answers how many notes are done with.
    async fn round(&self, progress: &mut Progress) -> Result<Copied, StoreError> {
        let Some(trail) = self.store.trail() else { return Ok(Copied { operations: 0, costs: 0 }) };
        let noted = trail.ended(self.partition, ROUND).await?;
        self.backlog.send_replace(noted.as_ref().map_or_else(Backlog::default, |noted| Backlog {
            waiting: noted.waiting,
            oldest: Some(noted.oldest),
        }));
        if !progress.is_laid_out {
            self.archiving.archive.migrate().await?;
            progress.is_laid_out = true;
        }
        let operations = match noted {
            Some(noted) => self.copy(trail, noted, progress).await?,
            None => 0,
        };
        Ok(Copied { operations, costs: self.copy_costs(trail).await? })
    }

    /// The same for what calls cost.
    async fn copy_costs(&self, trail: &dyn Trail) -> Result<usize, StoreError> {
        let Some(spent) = trail.spent(self.partition, ROUND_OF_COSTS).await? else { return Ok(0) };
        let count = spent.costs.len();
        self.archiving.archive.keep_costs(spent.costs).await?;
        let owner = *self.tenure.borrow();
        trail.booked(owner, spent.upto).await?;
        Ok(count)
    }

    async fn copy(
        &self,
        trail: &dyn Trail,
        noted: Noted,
        progress: &mut Progress,
    ) -> Result<usize, StoreError> {
        let mut left = &noted.seqs[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(progress.at_once.min(left.len()));
            let found = self.store.read(self.partition, now.to_vec()).await?;
            // What runs again is noted again when it ends.
            let ended: Vec<Stored> =
                found.into_iter().flatten().filter(|stored| stored.result.is_some()).collect();
            progress.at_once = next_size(now.len(), ended.iter().map(len).sum());
            self.archiving.archive.keep(self.partition, ended).await?;
            left = later;
        }
        let owner = *self.tenure.borrow();
        trail.trodden(owner, noted.upto).await?;
        Ok(noted.seqs.len())
    }

    /// Says what is wrong, once for all partitions of this process; answers how long to wait.
    fn failed(&self, error: &StoreError, progress: &mut Progress) -> Duration {
        // Of a newer owner the engine hears by itself.
        if error.kind() != Kind::Fenced && self.archiving.outage.begins(self.partition) {
            let (partition, archive) = (self.partition, self.archiving.archive.describe());
            tracing::warn!(partition, archive, %error, "what ended is not archived now; it is kept until it is");
        }
        progress.is_laid_out = false;
        let pause = RETRY.0.saturating_mul(1 << progress.failures.min(8)).min(RETRY.1);
        progress.failures = progress.failures.saturating_add(1);
        pause
    }
}

fn len(stored: &Stored) -> usize {
    stored.operation.payload.len() + stored.result.as_ref().map_or(0, |result| result.body.len())
}

/// How many to read next, when so many had so many bytes.
fn next_size(read: usize, bytes: usize) -> usize {
    if bytes > HELD_LEN { (read * HELD_LEN / bytes).max(1) } else { (read * 2).clamp(FIRST, ROUND) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_copied_a_few_at_a_time() {
        assert_eq!(next_size(16, 1_000), 32);
        assert_eq!(next_size(3, 1_000), FIRST);
        assert_eq!(next_size(200, HELD_LEN), ROUND);
        assert_eq!(next_size(16, 16 * HELD_LEN), 1);
        assert_eq!(next_size(1, 5 * HELD_LEN), 1);
        assert_eq!(next_size(256, 2 * HELD_LEN), 128);
    }
}
