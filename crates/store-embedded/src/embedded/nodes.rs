//! Node membership: the directory belongs to one process, so the in-process registry is enough.

use std::time::Duration;

use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Hints, Nodes, StoreFuture};
use tokio::sync::mpsc;

use super::EmbeddedStore;

impl Nodes for EmbeddedStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        let (name, record) = (name.to_owned(), record.clone());
        Box::pin(async move { Ok(self.nodes.register(&name, record, ttl)) })
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move { self.nodes.heartbeat(&name, ttl) })
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        Box::pin(async move { Ok(self.nodes.list()) })
    }
}

impl Hints for EmbeddedStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        Box::pin(async move { Ok(self.nodes.notify(&topic, &hint)) })
    }

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        Box::pin(async move { Ok(self.nodes.listen(&topic)) })
    }
}
