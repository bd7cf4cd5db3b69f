//! The log of a store that fails on purpose.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::log::{
    Batch, Lsn, Ownership, Page, Query, Replay, Retention, Stored, StoredOperation, Tenancy,
};
use tidegate_store::{Answer, Costs, Log, Trail};

use super::{Faulty, Verb};

impl Log for Faulty {
    fn own(&self, partition: Partition, node: &str, ttl: Duration) -> Answer<'_, Ownership> {
        let node = node.to_owned();
        self.pass(Verb::Own, move || self.inner.own(partition, &node, ttl))
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> Answer<'_, Ownership> {
        self.pass(Verb::Renew, move || self.inner.renew(owner, ttl))
    }

    fn owners(&self) -> Answer<'_, Vec<Tenancy>> {
        self.pass(Verb::Owners, move || self.inner.owners())
    }

    fn release(&self, owner: Ownership) -> Answer<'_, ()> {
        self.pass(Verb::Release, move || self.inner.release(owner))
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> Answer<'a, Lsn> {
        self.pass(Verb::Load, move || self.inner.load(partition, replay))
    }

    fn append(&self, owner: Ownership, batch: Batch) -> Answer<'_, Lsn> {
        self.pass(Verb::Append, move || self.inner.append(owner, batch))
    }

    fn appends_at_once(&self) -> usize {
        self.inner.appends_at_once()
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<Stored>>> {
        self.pass(Verb::Read, move || self.inner.read(partition, seqs))
    }

    fn operations(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<StoredOperation>>> {
        self.pass(Verb::Read, move || self.inner.operations(partition, seqs))
    }

    fn list(&self, partition: Partition, query: Query) -> Answer<'_, Page> {
        self.pass(Verb::List, move || self.inner.list(partition, query))
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Answer<'_, ()> {
        self.pass(Verb::Snapshot, move || self.inner.snapshot(owner, upto, parts))
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> Answer<'_, usize> {
        self.pass(Verb::Sweep, move || self.inner.sweep(owner, retention))
    }

    fn trail(&self) -> Option<&dyn Trail> {
        self.inner.trail()
    }

    fn costs(&self) -> Option<&dyn Costs> {
        self.inner.costs()
    }
}
