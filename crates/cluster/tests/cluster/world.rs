//! Several nodes in one process on one store in memory, each with its own connection to it that can
//! be cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_cluster::{
    AcquireError, BoxFuture, Cluster, HandshakeOutcome, PartitionHandle, PartitionHost, Settings,
};
use tidegate_contract::{FaultPlan, FaultyStore};
use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::{Batch, Ownership};
use tidegate_store::{Clock, Log, Store, StoreErrorKind};
use tidegate_store_embedded::MemoryStore;
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) const PARTITIONS: Partition = 16;
const LEASE: Duration = Duration::from_secs(5);

/// The store's clock, which moves with tokio's.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000_000).after(self.0.elapsed())
    }
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(TokioClock(Instant::now()))))
}

/// Who responds at which address; a node that is not listed responds at its own.
pub(crate) type AnswersByAddress = Arc<Mutex<BTreeMap<String, HandshakeOutcome>>>;

/// The deviations of a node from the default.
#[derive(Default)]
pub(crate) struct NodeOptions {
    pub(crate) plan: Option<FaultPlan>,
    pub(crate) cannot_read: Option<Partition>,
    pub(crate) placing: &'static str,
    pub(crate) answers: AnswersByAddress,
}

/// A node: its membership in the cluster, and its connection to the store.
pub(crate) struct TestNode {
    pub(crate) cluster: Cluster,
    pub(crate) store: Arc<FaultyStore>,
}

impl TestNode {
    pub(crate) async fn join(store: &Arc<dyn Store>, name: &str, plan: FaultPlan) -> Self {
        Self::join_with(store, name, NodeOptions { plan: Some(plan), ..NodeOptions::default() }).await
    }

    pub(crate) async fn join_with(store: &Arc<dyn Store>, name: &str, odd: NodeOptions) -> Self {
        let NodeOptions { plan, cannot_read, placing, answers: lines } = odd;
        let way = Arc::new(FaultyStore::new(Arc::clone(store), plan.unwrap_or_else(FaultPlan::none)));
        let host = TestHost { store: Arc::clone(&way), node: name.to_owned(), cannot_read, answers: lines };
        let settings = Settings {
            partitions: PARTITIONS,
            placement_hash: placing.to_owned(),
            ..Settings::new(name, format!("{name}:7400"))
        };
        let cluster = Cluster::join(Arc::clone(&way) as _, settings, Arc::new(host)).await.unwrap();
        Self { cluster, store: way }
    }

    pub(crate) fn serves(&self) -> usize {
        self.cluster.view().local_partitions.len()
    }
}

/// Owns partitions and renews its leases, as an engine would.
struct TestHost {
    store: Arc<FaultyStore>,
    node: String,
    cannot_read: Option<Partition>,
    answers: AnswersByAddress,
}

struct TestPartition {
    store: Arc<FaultyStore>,
    owner: Mutex<Ownership>,
    ended: watch::Sender<bool>,
}

impl PartitionHost for TestHost {
    fn handshake(&self, address: String) -> BoxFuture<'_, HandshakeOutcome> {
        let name = address.split(':').next().unwrap_or_default().to_owned();
        let is_me = name == self.node;
        let usual = if is_me {
            HandshakeOutcome::ThisProcess
        } else {
            HandshakeOutcome::Node { name, differs: None }
        };
        let answered = self.answers.lock().unwrap().get(&address).cloned().unwrap_or(usual);
        Box::pin(std::future::ready(answered))
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn acquire_partition(
        &self,
        partition: Partition,
    ) -> BoxFuture<'_, Result<Arc<dyn PartitionHandle>, AcquireError>> {
        Box::pin(async move {
            if self.cannot_read == Some(partition) {
                return Err(AcquireError { why: "a newer version wrote it".into(), unreadable: true });
            }
            let declined =
                |error: tidegate_store::Error| AcquireError { why: error.to_string(), unreadable: false };
            let owner = self.store.acquire_partition(partition, &self.node, LEASE).await.map_err(declined)?;
            let kept = TestPartition {
                store: Arc::clone(&self.store),
                owner: Mutex::new(owner),
                ended: watch::channel(false).0,
            };
            let kept = Arc::new(kept);
            tokio::spawn(Arc::clone(&kept).keep());
            Ok(kept as Arc<dyn PartitionHandle>)
        })
    }
}

impl TestPartition {
    /// Renews, and writes a little; ends as soon as there is another owner.
    async fn keep(self: Arc<Self>) {
        while !*self.ended.borrow() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let owner = *self.owner.lock().unwrap();
            let renewed = self.store.renew(owner, LEASE).await;
            let appended = self.store.append(owner, Batch::default()).await;
            if let Ok(owner) = renewed {
                *self.owner.lock().unwrap() = owner;
            }
            if appended.is_err_and(|error| error.kind() == StoreErrorKind::Fenced) {
                self.ended.send_replace(true);
            }
        }
    }
}

impl PartitionHandle for TestPartition {
    fn hand_over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let owner = *self.owner.lock().unwrap();
            self.store.release(owner).await.unwrap();
            self.ended.send_replace(true);
        })
    }

    fn ended(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            let mut ended = self.ended.subscribe();
            let _ = ended.wait_for(|ended| *ended).await;
            "a newer owner exists".to_owned()
        })
    }
}

/// How many partitions each node owns, according to the store.
pub(crate) async fn owned(store: &Arc<dyn Store>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for owner in store.partition_owners().await.unwrap() {
        *counts.entry(owner.node).or_default() += 1;
    }
    counts
}

/// Waits until the store reports this ownership; returns how long that took.
pub(crate) async fn wait_until_owned(store: &Arc<dyn Store>, expected: &[(&str, usize)]) -> Duration {
    let expected: BTreeMap<String, usize> =
        expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let start = Instant::now();
    loop {
        let counts = owned(store).await;
        if counts == expected {
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{counts:?} instead of {expected:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
