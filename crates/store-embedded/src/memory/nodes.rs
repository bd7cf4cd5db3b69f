//! Node membership: all nodes are in this process, so the in-process registry is enough.

use std::time::Duration;

use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Hints, Nodes, StoreFuture};
use tokio::sync::mpsc;

use super::{MemoryStore, ready};

impl Nodes for MemoryStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        let (name, record) = (name.to_owned(), record.clone());
        ready(move || Ok(self.nodes.register(&name, record, ttl)))
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        ready(move || self.nodes.heartbeat(&name, ttl))
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        ready(|| Ok(self.nodes.list()))
    }
}

impl Hints for MemoryStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        ready(move || Ok(self.nodes.notify(&topic, &hint)))
    }

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        ready(move || Ok(self.nodes.listen(&topic)))
    }
}
