//! Copies ended operations to the archive: reads the archive queue, saves the operations in the
//! archive, then acknowledges them. After a failure the step is repeated; saving twice has no
//! further effect. Nothing waits for the archiver, and it decides nothing.

mod shared_archive;

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::archive_queue::ArchiveBatch;
use tidegate_store::log::{Ownership, StoredEntry};
use tidegate_store::{ArchiveQueue, Error as StoreError, Store, StoreErrorKind};
use tokio::sync::{Notify, watch};

use crate::error::Error;
pub use shared_archive::SharedArchive;

/// The approximate number of operations taken from the queue in one round.
const BATCH_SIZE: usize = 256;
/// The approximate number of costs taken in one round.
const COST_BATCH_SIZE: usize = 1_000;
/// Operations in the first read; later reads depend on how large they were.
const FIRST_READ: usize = 16;
/// The approximate number of bytes of payloads and responses held at once.
const HELD_LEN: usize = 4 * 1024 * 1024;
/// How long to wait for more after an operation ended, so that many are saved in one step.
const GATHER: Duration = Duration::from_millis(100);
/// How often the queue is polled without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The first and the longest pause between two attempts.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// Ended operations that are not in the archive yet, as last observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// The number of operations.
    pub waiting: u64,
    /// When the oldest of them ended.
    pub oldest: Option<Time>,
}

/// The archiver of one partition.
pub(crate) struct Archiver {
    pub store: Arc<dyn Store>,
    pub archiving: SharedArchive,
    pub partition: Partition,
    pub ownership: watch::Receiver<Ownership>,
    pub stopped: watch::Receiver<Option<Error>>,
    /// Notified when an operation ended.
    pub ended: Arc<Notify>,
    pub backlog: watch::Sender<Backlog>,
}

/// What a round copied.
struct CopiedCounts {
    operations: usize,
    costs: usize,
}

/// State kept from one round to the next.
struct Progress {
    is_laid_out: bool,
    at_once: usize,
    failures: u32,
}

impl Archiver {
    /// Runs until the engine stops.
    pub(crate) async fn work(self) {
        self.copy_until_stopped().await;
        self.archiving.outage.remove_partition(self.partition);
    }

    async fn copy_until_stopped(&self) {
        let mut stopped = self.stopped.clone();
        let mut progress = Progress { is_laid_out: false, at_once: FIRST_READ, failures: 0 };
        while stopped.borrow().is_none() {
            let rest = match self.round(&mut progress).await {
                Ok(CopiedCounts { operations, costs }) => {
                    progress.failures = 0;
                    if self.archiving.outage.record_success(self.partition) {
                        tracing::info!("archiving works again");
                    }
                    if operations + costs > 0 {
                        metrics::counter!("tidegate_archived_total").increment(operations as u64);
                        continue;
                    }
                    None
                }
                Err(error) => Some(self.record_failure(&error, &mut progress)),
            };
            tokio::select! {
                _ = stopped.wait_for(Option::is_some) => return,
                () = self.wait_for_work(rest) => {}
            }
        }
    }

    /// Waits out a failure, or until there may be something to do.
    async fn wait_for_work(&self, failed: Option<Duration>) {
        match failed {
            Some(pause) => tokio::time::sleep(pause).await,
            None => {
                // Look again whether notified or timed out.
                let _ = tokio::time::timeout(POLL_INTERVAL, self.ended.notified()).await;
                tokio::time::sleep(GATHER).await;
            }
        }
    }

    /// Copies part of the queue; returns how many entries are done.
    async fn round(&self, progress: &mut Progress) -> Result<CopiedCounts, StoreError> {
        let Some(trail) = self.store.archive_queue() else {
            return Ok(CopiedCounts { operations: 0, costs: 0 });
        };
        let noted = trail.next_ended(self.partition, BATCH_SIZE).await?;
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
        Ok(CopiedCounts { operations, costs: self.copy_costs(trail).await? })
    }

    /// Does the same for call costs.
    async fn copy_costs(&self, trail: &dyn ArchiveQueue) -> Result<usize, StoreError> {
        let Some(spent) = trail.next_costs(self.partition, COST_BATCH_SIZE).await? else { return Ok(0) };
        let count = spent.costs.len();
        self.archiving.archive.save_costs(spent.costs).await?;
        let owner = *self.ownership.borrow();
        trail.ack_costs(owner, spent.upto).await?;
        Ok(count)
    }

    async fn copy(
        &self,
        trail: &dyn ArchiveQueue,
        noted: ArchiveBatch,
        progress: &mut Progress,
    ) -> Result<usize, StoreError> {
        let mut left = &noted.seqs[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(progress.at_once.min(left.len()));
            let found = self.store.read(self.partition, now.to_vec()).await?;
            // A rerun operation is queued again when it ends.
            let ended: Vec<StoredEntry> =
                found.into_iter().flatten().filter(|stored| stored.result.is_some()).collect();
            progress.at_once = next_size(now.len(), ended.iter().map(len).sum());
            self.archiving.archive.save(self.partition, ended).await?;
            left = later;
        }
        let owner = *self.ownership.borrow();
        trail.ack_archived(owner, noted.upto).await?;
        Ok(noted.seqs.len())
    }

    /// Logs the failure, once for all partitions of this process; returns how long to wait.
    fn record_failure(&self, error: &StoreError, progress: &mut Progress) -> Duration {
        // The engine learns of a newer owner by itself.
        if error.kind() != StoreErrorKind::Fenced && self.archiving.outage.record_failure(self.partition) {
            let (partition, archive) = (self.partition, self.archiving.archive.describe());
            tracing::warn!(partition, archive, %error, "archiving fails; ended operations are kept until it works again");
        }
        progress.is_laid_out = false;
        let pause = RETRY.0.saturating_mul(1 << progress.failures.min(8)).min(RETRY.1);
        progress.failures = progress.failures.saturating_add(1);
        pause
    }
}

fn len(stored: &StoredEntry) -> usize {
    stored.operation.payload.len() + stored.result.as_ref().map_or(0, |result| result.body.len())
}

/// The number to read next, given how many bytes the last reads had.
fn next_size(read: usize, bytes: usize) -> usize {
    if bytes > HELD_LEN { (read * HELD_LEN / bytes).max(1) } else { (read * 2).clamp(FIRST_READ, BATCH_SIZE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_copied_a_few_at_a_time() {
        assert_eq!(next_size(16, 1_000), 32);
        assert_eq!(next_size(3, 1_000), FIRST_READ);
        assert_eq!(next_size(200, HELD_LEN), BATCH_SIZE);
        assert_eq!(next_size(16, 16 * HELD_LEN), 1);
        assert_eq!(next_size(1, 5 * HELD_LEN), 1);
        assert_eq!(next_size(256, 2 * HELD_LEN), 128);
    }
}
