//! The nodes and the upkeep of a store with fault injection.

use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{Hints, Nodes, Outbox, StoreFuture, Upkeep};
use tokio::sync::mpsc;

use super::{FaultyStore, StoreMethod};

impl Nodes for FaultyStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        let (name, record) = (name.to_owned(), record.clone());
        self.call_with_fault(StoreMethod::Register, move || self.inner.register(&name, &record, ttl))
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        self.call_with_fault(StoreMethod::Heartbeat, move || self.inner.heartbeat(&name, ttl))
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        self.call_with_fault(StoreMethod::ListNodes, move || self.inner.list_nodes())
    }
}

impl Hints for FaultyStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        self.call_with_fault(StoreMethod::Notify, move || self.inner.notify(&topic, &hint))
    }

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        self.call_with_fault(StoreMethod::Listen, move || self.inner.listen(&topic))
    }
}

impl Upkeep for FaultyStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::Migrate, move || self.inner.migrate())
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::CheckLayout, move || self.inner.check_layout())
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        self.call_with_fault(StoreMethod::EnsurePartitions, move || self.inner.ensure_partitions(wanted))
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        self.call_with_fault(StoreMethod::EnsureSecret, move || self.inner.ensure_secret(offered))
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::Health, move || self.inner.health())
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        self.call_with_fault(StoreMethod::Stats, move || self.inner.stats())
    }

    fn server_settings(&self) -> StoreFuture<'_, Vec<(String, String)>> {
        self.inner.server_settings()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Passed through: its rows are removed by an append.
    fn outbox(&self) -> Option<&dyn Outbox> {
        self.inner.outbox()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
