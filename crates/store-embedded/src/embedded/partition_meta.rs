//! The writer's in-memory state of its file: the owner of the partition, the last append, and
//! counts. It changes with a transaction and is rolled back with it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::log::{Epoch, Lsn, Ownership, PartitionOwner};

use super::schema::{meta, set_meta};
use crate::epoch_lease::EpochLease;

/// The writer's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartitionMeta {
    /// The owner of the partition. Whoever opens the file has its lock, so a previous owner is
    /// dead.
    pub(super) lease: EpochLease,
    /// The last append.
    pub(super) last: Lsn,
    /// The last append that a snapshot has replaced.
    pub(super) trimmed: Lsn,
    /// The newest snapshot.
    pub(super) snapshot: Lsn,
    /// The number of stored operations.
    pub(super) operations: u64,
    /// The number of commits of data that is in no other file: records, leases, the journal.
    pub(super) commits: u64,
}

impl PartitionMeta {
    /// Reads the state from the file.
    pub(super) fn read(sql: &Connection, snapshot: Lsn) -> rusqlite::Result<Self> {
        let number = |name| Ok::<_, rusqlite::Error>(meta(sql, name)?.unwrap_or(0).cast_unsigned());
        let trimmed = Lsn(number("trimmed")?);
        let last: Option<i64> = sql.query_row("SELECT max(lsn) FROM log", [], |row| row.get(0))?;
        Ok(Self {
            lease: EpochLease::free(Epoch(number("epoch")?)),
            last: Lsn(last.unwrap_or(0).cast_unsigned()).max(trimmed),
            trimmed,
            snapshot,
            operations: number("operations")?,
            commits: number("commits")?,
        })
    }

    /// Writes what differs from `before` and must outlive the process.
    pub(super) fn write(&self, sql: &Connection, before: &Self) -> rusqlite::Result<()> {
        let now_and_then = [
            ("epoch", self.lease.epoch.0, before.lease.epoch.0),
            ("operations", self.operations, before.operations),
            ("trimmed", self.trimmed.0, before.trimmed.0),
            ("commits", self.commits, before.commits),
        ];
        for (name, now, then) in now_and_then {
            if now != then {
                set_meta(sql, name, now.cast_signed())?;
            }
        }
        Ok(())
    }
}

/// Counts for readers, so that no one has to ask the writer.
#[derive(Debug, Default)]
pub(super) struct Counts {
    operations: AtomicU64,
    appends: AtomicU64,
    last: AtomicU64,
    pages: AtomicU32,
    lease: Mutex<EpochLease>,
}

impl Counts {
    pub(super) fn update_from(&self, ledger: &PartitionMeta) {
        let appends = ledger.last.0.saturating_sub(ledger.snapshot.0.max(ledger.trimmed.0));
        self.operations.store(ledger.operations, Ordering::Relaxed);
        self.appends.store(appends, Ordering::Relaxed);
        self.last.store(ledger.last.0, Ordering::Release);
        let mut tenure = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        if *tenure != ledger.lease {
            tenure.clone_from(&ledger.lease);
        }
    }

    /// Rejects an owner that has been superseded by a newer one.
    pub(super) fn check(&self, owner: Ownership) -> Result<()> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).check(owner)
    }

    /// The current owner of the partition.
    pub(super) fn current_owner(&self, partition: Partition, now: Time) -> Option<PartitionOwner> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).current_owner(partition, now)
    }

    /// The last append in the file.
    pub(super) fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// The number of pages of the file.
    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(super) fn set_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    pub(super) fn appends(&self) -> u64 {
        self.appends.load(Ordering::Relaxed)
    }
}
