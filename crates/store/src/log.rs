//! The log of a partition: its owner's decisions, in order, and the payloads and results that
//! belong to them. Guarantees: an append is all or nothing; once it has returned, it survives the
//! death of the process and of the machine; an append of an older epoch is refused; `load` returns
//! exactly what was appended since the last snapshot, in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Fact, Fault, Seq, Time};

use crate::attempt::StoredAttempt;
use crate::costs::Cost;
use crate::outbox::OutboxId;
use crate::{ArchiveQueue, Costs, StoreFuture};

/// Increases with every owner of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The number of an append in its partition; the first one is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// An owner's right to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The partition.
    pub partition: Partition,
    /// Carried by every append.
    pub epoch: Epoch,
    /// The owner must renew before this: the store's time when it was granted, plus the requested
    /// duration.
    pub until: Time,
}

/// The current owner of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionOwner {
    /// The partition.
    pub partition: Partition,
    /// The node that owns it.
    pub node: String,
    /// The epoch of the owner.
    pub epoch: Epoch,
    /// When the ownership expires, unless it is renewed.
    pub until: Time,
}

/// The content of one append, made durable all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The decisions, in order.
    pub facts: Vec<Fact>,
    /// The accepted operations, with their payloads. Sequence numbers increase. Whoever appends
    /// them keeps them too, to send them.
    pub operations: Vec<Arc<StoredOperation>>,
    /// How operations ended. A result replaces an existing one; of two for the same operation, the
    /// later counts.
    pub results: Vec<StoredResult>,
    /// Operations whose result is void, because they run again. An operation that is also in
    /// `results` has that result.
    pub reopened: Vec<Seq>,
    /// Outbox rows that this append removes. When one of them does not exist, nothing is written
    /// (`Unavailable`); a store without an outbox refuses them (`Invalid`).
    pub drained: Vec<OutboxId>,
    /// The costs of the calls that it settles. A store that keeps no costs discards them, unless it
    /// queues them for an archive.
    pub costs: Vec<Cost>,
    /// Attempts whose job ends elsewhere. A row is merged onto an existing one of the same claim
    /// ([`StoredAttempt::merge`]).
    pub attempts: Vec<StoredAttempt>,
    /// The append that this one follows. When that is not the last one, an earlier append failed,
    /// and this one is refused (`Unavailable`); so several may be in flight at once.
    pub follows: Option<Lsn>,
}

/// A stored operation: written once, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperation {
    /// Its sequence number.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// The kind of its executor.
    pub kind: Arc<str>,
    /// The caller's dedupe key, for people.
    pub key: Option<Arc<str>>,
    /// What the owner needs to execute it again, opaque to the store.
    pub envelope: Bytes,
    /// The request, opaque to the store.
    pub payload: Bytes,
}

/// The stored result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    /// The sequence number of the operation.
    pub seq: Seq,
    /// When it ended.
    pub at: Time,
    /// How it ended.
    pub state: EndState,
    /// Attempts spent.
    pub attempt: u16,
    /// Why it did not succeed.
    pub fault: Option<Fault>,
    /// The response, opaque to the store; empty when there was none.
    pub body: Bytes,
}

/// An operation and, once it ended, its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The operation as accepted.
    pub operation: StoredOperation,
    /// How it ended.
    pub result: Option<StoredResult>,
}

/// The callback of `load`, called in order with the parts of the last snapshot, then with every
/// later append.
pub type Replay<'a> = &'a mut (dyn FnMut(Vec<Fact>) + Send);

/// Selects the operations to list: newest first, at most `limit`, with sequence numbers below
/// `before`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredQuery {
    /// Only operations of this group.
    pub group: Option<Arc<str>>,
    /// Only operations of this kind.
    pub kind: Option<Arc<str>>,
    /// Only operations that ended in this state.
    pub ended: Option<EndState>,
    /// Only operations accepted before this one.
    pub before: Option<Seq>,
    /// The maximum number of operations to return.
    pub limit: usize,
}

/// A page of a list. Payloads and bodies are omitted (empty).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPage {
    /// Newest first.
    pub items: Vec<StoredEntry>,
    /// Where the next page starts: the last sequence number scanned. `None` at the end.
    pub next: Option<Seq>,
}

/// What `sweep` may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Results older than this are removed, with their operations.
    pub ended_before: Time,
    /// The maximum number to remove in one call, so that the writer is not held up.
    pub most: usize,
}

/// The log of partitions.
pub trait Log: Send + Sync {
    /// Becomes the owner in a new epoch, for `ttl`. `Held` while another owner's lease is in force.
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership>;

    /// Renews the ownership for another `ttl`. `Fenced` when a newer owner exists.
    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership>;

    /// Releases the ownership, so that the next owner need not wait.
    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()>;

    /// Lists the current owners, by partition. A partition whose lease has expired or was released
    /// is not listed.
    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>>;

    /// Replays the last snapshot and every later append, in order; returns the number of the last
    /// append.
    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn>;

    /// Makes a batch durable, all or nothing. `Fenced` when a newer owner exists, `Unavailable`
    /// when nothing was written, `Unsure` when that is unknown.
    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn>;

    /// How many appends an owner may usefully have in flight at once. One, where the log serializes
    /// them anyway: a command that arrives meanwhile is better off in the next batch than in the
    /// one after it.
    fn max_concurrent_appends(&self) -> usize;

    /// Returns the requested operations, in that order, with payloads and results; `None` for those
    /// that are not stored.
    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>>;

    /// Returns the requested operations, in that order, as they were accepted; `None` for those
    /// that are not stored. The same as `read` without the results, for a caller that sends many of
    /// them: it must not cost more than `read`.
    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>>;

    /// Returns the attempts of the requested operations whose job ended, or ends, elsewhere: for
    /// each operation in that order, its attempts by fence.
    fn read_attempts(&self, partition: Partition, seqs: Vec<Seq>)
    -> StoreFuture<'_, Vec<Vec<StoredAttempt>>>;

    /// Returns a page of operations.
    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage>;

    /// Replaces everything up to and including `upto` by equivalent facts. Encoded facts are taken
    /// in parts, because a snapshot can be large. The log stays readable throughout: a crash in
    /// between leaves the old one.
    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()>;

    /// Removes operations past their retention, with their attempts; returns how many. Operations
    /// in the archive queue stay.
    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize>;

    /// The queue of ended operations that are not archived yet, where appends write one.
    fn archive_queue(&self) -> Option<&dyn ArchiveQueue> {
        None
    }

    /// The call costs, where appends keep them.
    fn costs(&self) -> Option<&dyn Costs> {
        None
    }
}
