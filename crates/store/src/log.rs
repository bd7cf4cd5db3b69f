//! The log of a partition: what its owner decided, in order, and the payloads and results that belong to it.
//! Promises: an append is all or nothing; when it has answered, it survives the death of the process and of the
//! machine; an append of an older epoch is refused; `load` gives back exactly what was appended since the last
//! snapshot, in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Fact, Fault, Seq, Time};

use crate::costs::Cost;
use crate::outbox::OutboxId;
use crate::{ArchiveQueue, Costs, StoreFuture};

/// Grows with every owner of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Number of an append in its partition; the first one is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// An owner's right to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Of which partition.
    pub partition: Partition,
    /// Carried by every append.
    pub epoch: Epoch,
    /// Must be renewed before this: the store's time when it was granted, and as long as was asked for.
    pub until: Time,
}

/// Who owns a partition now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionOwner {
    /// Which.
    pub partition: Partition,
    /// The node that owns it.
    pub node: String,
    /// With which epoch.
    pub epoch: Epoch,
    /// Until when, unless it renews.
    pub until: Time,
}

/// What one append makes durable, all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// What was decided, in order.
    pub facts: Vec<Fact>,
    /// The operations that were accepted, with their payloads. Seqs grow.
    pub operations: Vec<StoredOperation>,
    /// How operations ended. One that has a result already has this one then; of two for the same, the later one.
    pub results: Vec<StoredResult>,
    /// Operations whose result no longer stands, because they run again. An operation that is also in `results`
    /// has that one.
    pub reopened: Vec<Seq>,
    /// Rows of the outbox that this append takes out of it. When one of them is not there, nothing is written
    /// (`Unavailable`); a store without an outbox refuses them (`Invalid`).
    pub drained: Vec<OutboxId>,
    /// What calls that it settles cost. A store that keeps no costs takes them and forgets them, unless it notes them for
    /// an archive.
    pub costs: Vec<Cost>,
    /// The append that this one follows. When that is not the last one, an earlier append did not stand, and this one
    /// is refused (`Unavailable`); so several may be under way at once.
    pub follows: Option<Lsn>,
}

/// An operation as it is kept: written once, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperation {
    /// Its place.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// Who carries it.
    pub kind: Arc<str>,
    /// The caller's key, for people.
    pub key: Option<Arc<str>>,
    /// What the owner needs to take it up again, opaque to the store.
    pub envelope: Bytes,
    /// What is sent, opaque to the store.
    pub payload: Bytes,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    /// Which.
    pub seq: Seq,
    /// When.
    pub at: Time,
    /// How.
    pub state: EndState,
    /// Attempts spent.
    pub attempt: u16,
    /// Why, when it was not a success.
    pub fault: Option<Fault>,
    /// What came back, opaque to the store; empty when nothing did.
    pub body: Bytes,
}

/// An operation and, once it ended, its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// As it was accepted.
    pub operation: StoredOperation,
    /// How it ended.
    pub result: Option<StoredResult>,
}

/// What `load` hands over, in order: the parts of the last snapshot, then every later append.
pub type Replay<'a> = &'a mut (dyn FnMut(Vec<Fact>) + Send);

/// Which operations to list: newest first, at most `limit`, with seqs below `before`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredQuery {
    /// Only of this group.
    pub group: Option<Arc<str>>,
    /// Only of this kind.
    pub kind: Option<Arc<str>>,
    /// Only those that ended like this.
    pub ended: Option<EndState>,
    /// Only those accepted before this one.
    pub before: Option<Seq>,
    /// At most this many.
    pub limit: usize,
}

/// A page of a list. Payloads and bodies are left out (empty).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPage {
    /// Newest first.
    pub items: Vec<StoredEntry>,
    /// Where to go on: the last seq that was looked at. `None` when there is no more.
    pub next: Option<Seq>,
}

/// What `sweep` may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Results older than this go, with their operations.
    pub ended_before: Time,
    /// At most this many in one call, so that the writer is not held up.
    pub most: usize,
}

/// The log of partitions.
pub trait Log: Send + Sync {
    /// Becomes the owner: a new epoch, for `ttl`. `Held` while another owner's lease runs.
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership>;

    /// Stays the owner for another `ttl`. `Fenced` when a newer one exists.
    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership>;

    /// Stops being the owner, so that the next one need not wait.
    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()>;

    /// Who owns which partition now, by partition. One whose lease has run out or was released is not listed.
    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>>;

    /// Hands over the last snapshot and every later append, in order; answers the last append's number.
    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn>;

    /// Makes a batch durable, all or nothing. `Fenced` when a newer owner exists, `Unavailable` when nothing was
    /// written, `Unsure` when that is not known.
    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn>;

    /// How many appends an owner may usefully have under way at once. Where the log takes them one after the other anyway,
    /// one: whoever comes meanwhile is better off in the next batch than in the one after it.
    fn max_concurrent_appends(&self) -> usize;

    /// The operations asked for, in that order, with payloads and results; `None` for those that are not kept.
    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>>;

    /// The operations asked for, in that order, as they were accepted; `None` for those that are not kept. What `read`
    /// answers without the results, for whoever sends many of them: it must not cost more than `read`.
    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>>;

    /// A page of operations.
    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage>;

    /// Replaces everything up to and including `upto` by `facts`, which say the same. Encoded facts are taken in
    /// parts, because a snapshot can be large. The log stays readable throughout: a crash in between leaves the
    /// old one.
    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()>;

    /// Removes what retention no longer keeps; answers how many operations went. What is on the trail stays.
    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize>;

    /// What ended and is not archived yet, where appends note it.
    fn archive_queue(&self) -> Option<&dyn ArchiveQueue> {
        None
    }

    /// What calls cost, where appends keep it.
    fn costs(&self) -> Option<&dyn Costs> {
        None
    }
}
