//! The nodes and the upkeep of a store that fails on purpose.

use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;
use tidegate_store::upkeep::{SECRET_LEN, Stats};
use tidegate_store::{Answer, Nodes, Outbox, Upkeep};
use tokio::sync::mpsc;

use super::{Faulty, Verb};

impl Nodes for Faulty {
    fn register(&self, name: &str, address: &str, ttl: Duration) -> Answer<'_, Node> {
        let (name, address) = (name.to_owned(), address.to_owned());
        self.pass(Verb::Register, move || self.inner.register(&name, &address, ttl))
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> Answer<'_, Node> {
        let name = name.to_owned();
        self.pass(Verb::Heartbeat, move || self.inner.heartbeat(&name, ttl))
    }

    fn list_nodes(&self) -> Answer<'_, Vec<Node>> {
        self.pass(Verb::ListNodes, move || self.inner.list_nodes())
    }

    fn notify(&self, topic: &str, hint: &str) -> Answer<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        self.pass(Verb::Notify, move || self.inner.notify(&topic, &hint))
    }

    fn listen(&self, topic: &str) -> Answer<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        self.pass(Verb::Listen, move || self.inner.listen(&topic))
    }
}

impl Upkeep for Faulty {
    fn migrate(&self) -> Answer<'_, ()> {
        self.pass(Verb::Migrate, move || self.inner.migrate())
    }

    fn layout(&self) -> Answer<'_, ()> {
        self.pass(Verb::Layout, move || self.inner.layout())
    }

    fn partitions(&self, wanted: Partition) -> Answer<'_, Partition> {
        self.pass(Verb::Partitions, move || self.inner.partitions(wanted))
    }

    fn secret(&self, offered: [u8; SECRET_LEN]) -> Answer<'_, [u8; SECRET_LEN]> {
        self.pass(Verb::Secret, move || self.inner.secret(offered))
    }

    fn health(&self) -> Answer<'_, ()> {
        self.pass(Verb::Health, move || self.inner.health())
    }

    fn stats(&self) -> Answer<'_, Stats> {
        self.pass(Verb::Stats, move || self.inner.stats())
    }

    fn server(&self) -> Answer<'_, Vec<(String, String)>> {
        self.inner.server()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Passed on as it is: what is taken out of it goes through an append.
    fn outbox(&self) -> Option<&dyn Outbox> {
        self.inner.outbox()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
