//! Broken nodes and upkeep.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{Hints, Nodes, StoreFuture, Upkeep};
use tokio::sync::mpsc;

use super::{BrokenStore, Quirk};

impl Nodes for BrokenStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        self.notes.lock().unwrap().calls += 1;
        self.inner.register(name, record, ttl)
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.inner.heartbeat(&name, ttl).await {
                Err(_) if self.is(Quirk::HeartbeatRegisters) => {
                    self.inner.register(&name, &NodeRecord::default(), ttl).await
                }
                answer => answer,
            }
        })
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        Box::pin(async move {
            let mut nodes = self.inner.list_nodes().await?;
            let registered = self.notes.lock().unwrap().calls;
            if self.is(Quirk::NodesStay) && registered > 1 && nodes.iter().all(|node| node.name != "b") {
                nodes.push(Node { name: "b".into(), record: NodeRecord::default(), until: Time::ZERO });
            }
            Ok(nodes)
        })
    }
}

impl Hints for BrokenStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
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

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        self.inner.listen(topic)
    }
}

impl Upkeep for BrokenStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        self.inner.migrate()
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        self.inner.check_layout()
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        if self.is(Quirk::PartitionsFollow) {
            return Box::pin(async move { Ok(wanted.max(1)) });
        }
        self.inner.ensure_partitions(wanted)
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        if self.is(Quirk::SecretFollows) {
            return Box::pin(async move { Ok(offered) });
        }
        self.inner.ensure_secret(offered)
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        self.inner.health()
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        if self.is(Quirk::StatsForget) {
            return Box::pin(async { Ok(StoreStats::default()) });
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
