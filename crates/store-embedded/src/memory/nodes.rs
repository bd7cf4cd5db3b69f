//! Who is there: everybody is in this process, so the register answers.

use std::time::Duration;

use tidegate_store::nodes::Node;
use tidegate_store::{Answer, Nodes};
use tokio::sync::mpsc;

use super::{Memory, at_once};

impl Nodes for Memory {
    fn register(&self, name: &str, address: &str, ttl: Duration) -> Answer<'_, Node> {
        let (name, address) = (name.to_owned(), address.to_owned());
        at_once(move || Ok(self.nodes.register(&name, &address, ttl)))
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> Answer<'_, Node> {
        let name = name.to_owned();
        at_once(move || self.nodes.heartbeat(&name, ttl))
    }

    fn list_nodes(&self) -> Answer<'_, Vec<Node>> {
        at_once(|| Ok(self.nodes.list()))
    }

    fn notify(&self, topic: &str, hint: &str) -> Answer<'_, usize> {
        let (topic, hint) = (topic.to_owned(), hint.to_owned());
        at_once(move || Ok(self.nodes.notify(&topic, &hint)))
    }

    fn listen(&self, topic: &str) -> Answer<'_, mpsc::Receiver<String>> {
        let topic = topic.to_owned();
        at_once(move || Ok(self.nodes.listen(&topic)))
    }
}
