//! Tracks the partitions that this process appends to: how far each log certainly goes, which
//! staging slots are free, and whether an append has an unknown outcome. The server decides; this
//! detects when the server has lost data.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::id::Partition;
use tidegate_store::log::{Epoch, Lsn, Ownership};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The appends of one owner that may be in flight at once.
pub(crate) const SLOTS: u8 = 8;

/// The number of appends of this process so far, to tell them apart.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The tails of the newest epochs.
#[derive(Default)]
pub(crate) struct Tails(Mutex<HashMap<Partition, Arc<Tail>>>);

/// One owner's end of a log.
pub(crate) struct Tail {
    epoch: Epoch,
    /// The last append that is known to exist.
    last: AtomicU64,
    is_unsure: AtomicBool,
    free: Mutex<Vec<u8>>,
    room: Semaphore,
}

/// A slot for staging a batch. One that is dropped before its outcome is known makes the tail
/// unsure.
pub(crate) struct Slot<'a> {
    tail: &'a Tail,
    number: u8,
    is_settled: bool,
    _room: Option<SemaphorePermit<'a>>,
}

impl Tails {
    /// Starts a new epoch, at this append.
    pub(crate) fn begin(&self, owner: Ownership, last: Lsn) {
        self.map().insert(owner.partition, Arc::new(Tail::new(owner.epoch, last)));
    }

    /// The tail of this owner. An owner that is not the newest in this process gets one that no one
    /// else uses.
    pub(crate) fn of(&self, owner: Ownership) -> Arc<Tail> {
        let mut map = self.map();
        let known = map.get(&owner.partition);
        if let Some(known) = known.filter(|known| known.epoch == owner.epoch) {
            return Arc::clone(known);
        }
        let is_newest = known.is_none_or(|known| known.epoch < owner.epoch);
        let fresh = Arc::new(Tail::new(owner.epoch, Lsn(0)));
        if is_newest {
            map.insert(owner.partition, Arc::clone(&fresh));
        }
        fresh
    }

    /// Notes that the log of this partition goes at least this far.
    pub(crate) fn advance_partition(&self, partition: Partition, last: Lsn) {
        if let Some(tail) = self.map().get(&partition) {
            tail.advance_to(last);
        }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<Partition, Arc<Tail>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn new(epoch: Epoch, last: Lsn) -> Self {
        Self {
            epoch,
            last: AtomicU64::new(last.0),
            is_unsure: AtomicBool::new(false),
            free: Mutex::new((1..=SLOTS).rev().collect()),
            room: Semaphore::new(usize::from(SLOTS)),
        }
    }

    pub(crate) fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    pub(crate) fn advance_to(&self, last: Lsn) {
        self.last.fetch_max(last.0, Ordering::AcqRel);
    }

    /// Returns whether the outcome of an append is unknown, so that this owner may append nothing
    /// more.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unsure.load(Ordering::Acquire)
    }

    /// A token that identifies this append.
    pub(crate) fn token(&self) -> String {
        format!("{}.{}.{}", self.epoch.0, std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Acquires a slot for staging a batch; waits while all are in use, first come, first served.
    pub(crate) async fn acquire_slot(&self) -> Slot<'_> {
        let room = self.room.acquire().await.ok();
        let number = self.free().pop().unwrap_or_default();
        Slot { tail: self, number, is_settled: false, _room: room }
    }

    fn free(&self) -> MutexGuard<'_, Vec<u8>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot<'_> {
    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// Notes that the outcome of the append is known.
    pub(crate) const fn settle(&mut self) {
        self.is_settled = true;
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.tail.is_unsure.store(true, Ordering::Release);
        }
        self.tail.free().push(self.number);
    }
}
