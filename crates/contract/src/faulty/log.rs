//! The log of a store with fault injection.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{
    Batch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation, StoredPage,
    StoredQuery,
};
use tidegate_store::{ArchiveQueue, Costs, Log, StoreFuture};

use super::{FaultyStore, StoreMethod};

impl Log for FaultyStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node = node.to_owned();
        self.call_with_fault(StoreMethod::AcquirePartition, move || {
            self.inner.acquire_partition(partition, &node, ttl)
        })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        self.call_with_fault(StoreMethod::Renew, move || self.inner.renew(owner, ttl))
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        self.call_with_fault(StoreMethod::PartitionOwners, move || self.inner.partition_owners())
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::Release, move || self.inner.release(owner))
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        self.call_with_fault(StoreMethod::Load, move || self.inner.load(partition, replay))
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        self.call_with_fault(StoreMethod::Append, move || self.inner.append(owner, batch))
    }

    fn max_concurrent_appends(&self) -> usize {
        self.inner.max_concurrent_appends()
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        self.call_with_fault(StoreMethod::Read, move || {
            Box::pin(async move {
                let found = self.inner.read(partition, seqs).await?;
                Ok(found.into_iter().map(|stored| stored.map(|stored| self.damaged(stored))).collect())
            })
        })
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        self.call_with_fault(StoreMethod::Read, move || {
            Box::pin(async move {
                let found = self.inner.load_operations(partition, seqs).await?;
                let damaged = |operation| self.damaged(StoredEntry { operation, result: None }).operation;
                Ok(found.into_iter().map(|operation| operation.map(damaged)).collect())
            })
        })
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        self.call_with_fault(StoreMethod::Read, move || self.inner.read_attempts(partition, seqs))
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        self.call_with_fault(StoreMethod::List, move || {
            Box::pin(async move {
                let page = self.inner.list(partition, query).await?;
                let items = page.items.into_iter().map(|stored| self.damaged(stored)).collect();
                Ok(StoredPage { items, ..page })
            })
        })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::Snapshot, move || self.inner.snapshot(owner, upto, parts))
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        self.call_with_fault(StoreMethod::Sweep, move || self.inner.sweep(owner, retention))
    }

    fn archive_queue(&self) -> Option<&dyn ArchiveQueue> {
        self.inner.archive_queue()
    }

    fn costs(&self) -> Option<&dyn Costs> {
        self.inner.costs()
    }
}
