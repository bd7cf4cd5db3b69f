//! Nodes and upkeep that are broken.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;
use tidegate_store::upkeep::{SECRET_LEN, Stats};
use tidegate_store::{Answer, Nodes, Upkeep};
use tokio::sync::mpsc;

use super::{Broken, Quirk};

impl Nodes for Broken {
    fn register(&self, name: &str, address: &str, ttl: Duration) -> Answer<'_, Node> {
        self.notes.lock().unwrap().calls += 1;
        self.inner.register(name, address, ttl)
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> Answer<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.inner.heartbeat(&name, ttl).await {
                Err(_) if self.is(Quirk::HeartbeatRegisters) => self.inner.register(&name, "", ttl).await,
                answer => answer,
            }
        })
    }

    fn list_nodes(&self) -> Answer<'_, Vec<Node>> {
        Box::pin(async move {
            let mut nodes = self.inner.list_nodes().await?;
            let registered = self.notes.lock().unwrap().calls;
            if self.is(Quirk::NodesStay) && registered > 1 && nodes.iter().all(|node| node.name != "b") {
                nodes.push(Node { name: "b".into(), address: String::new(), until: Time::ZERO });
            }
            Ok(nodes)
        })
    }

    fn notify(&self, topic: &str, hint: &str) -> Answer<'_, usize> {
        let calls = {
            let mut notes = self.notes.lock().unwrap();
            notes.calls += 1;
            notes.calls
        };
        match self.quirk {
            Quirk::NotifyNobody => Box::pin(async { Ok(0) }),
            Quirk::NotifyWaitsForSlow if calls > 1_000 => Box::pin(std::future::pending()),
            _ => self.inner.notify(topic, hint),
        }
    }

    fn listen(&self, topic: &str) -> Answer<'_, mpsc::Receiver<String>> {
        self.inner.listen(topic)
    }
}

impl Upkeep for Broken {
    fn migrate(&self) -> Answer<'_, ()> {
        self.inner.migrate()
    }

    fn layout(&self) -> Answer<'_, ()> {
        self.inner.layout()
    }

    fn partitions(&self, wanted: Partition) -> Answer<'_, Partition> {
        if self.is(Quirk::PartitionsFollow) {
            return Box::pin(async move { Ok(wanted.max(1)) });
        }
        self.inner.partitions(wanted)
    }

    fn secret(&self, offered: [u8; SECRET_LEN]) -> Answer<'_, [u8; SECRET_LEN]> {
        if self.is(Quirk::SecretFollows) {
            return Box::pin(async move { Ok(offered) });
        }
        self.inner.secret(offered)
    }

    fn health(&self) -> Answer<'_, ()> {
        self.inner.health()
    }

    fn stats(&self) -> Answer<'_, Stats> {
        if self.is(Quirk::StatsForget) {
            return Box::pin(async { Ok(Stats::default()) });
        }
        self.inner.stats()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
