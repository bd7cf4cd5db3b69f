//! Who is there: the directory belongs to one process, so the register in it answers.

use std::time::Duration;

use tidegate_store::nodes::Node;
use tidegate_store::{Answer, Nodes};
use tokio::sync::mpsc;

use super::Embedded;

impl Nodes for Embedded {
    fn register(&self, name: &str, address: &str, ttl: Duration) -> Answer<'_, Node> {
        let (name, address) = (name.to_owned(), address.to_owned());
        Box::pin(async move { Ok(self.nodes.register(&name, &address, ttl)) })
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> Answer<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move { self.nodes.heartbeat(&name, ttl) })
    }

    fn list_nodes(&self) -> Answer<'_, Vec<Node>> {
        Box::pin(async move { Ok(self.nodes.list()) })
    }

    fn notify(&self, topic: &str, hint: &str) -> Answer<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        Box::pin(async move { Ok(self.nodes.notify(&topic, &hint)) })
    }

    fn listen(&self, topic: &str) -> Answer<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        Box::pin(async move { Ok(self.nodes.listen(&topic)) })
    }
}
