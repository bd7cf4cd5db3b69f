//! Several nodes in one process on one store in memory, each with its own way to it that can be cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_cluster::{Answered, Cluster, Declined, Host, Later, Settings, Tenant};
use tidegate_contract::{Faulty, Plan};
use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::{Batch, Ownership};
use tidegate_store::{Clock, Kind, Log, Store};
use tidegate_store_embedded::Memory;
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) const PARTITIONS: Partition = 16;
const LEASE: Duration = Duration::from_secs(5);

/// The store's clock, which moves with tokio's.
struct Moving(Instant);

impl Clock for Moving {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000_000).after(self.0.elapsed())
    }
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(Memory::new(Arc::new(Moving(Instant::now()))))
}

/// Who answers at which address; whoever is not here answers at its own, for itself.
pub(crate) type Lines = Arc<Mutex<BTreeMap<String, Answered>>>;

/// What is out of the ordinary about a node.
#[derive(Default)]
pub(crate) struct Odd {
    pub(crate) plan: Option<Plan>,
    pub(crate) cannot_read: Option<Partition>,
    pub(crate) placing: &'static str,
    pub(crate) lines: Lines,
}

/// A node: its part in the cluster, and its way to the store.
pub(crate) struct Member {
    pub(crate) cluster: Cluster,
    pub(crate) way: Arc<Faulty>,
}

impl Member {
    pub(crate) async fn join(store: &Arc<dyn Store>, name: &str, plan: Plan) -> Self {
        Self::join_odd(store, name, Odd { plan: Some(plan), ..Odd::default() }).await
    }

    pub(crate) async fn join_odd(store: &Arc<dyn Store>, name: &str, odd: Odd) -> Self {
        let Odd { plan, cannot_read, placing, lines } = odd;
        let way = Arc::new(Faulty::new(Arc::clone(store), plan.unwrap_or_else(Plan::none)));
        let host = Keeper { store: Arc::clone(&way), node: name.to_owned(), cannot_read, lines };
        let settings = Settings {
            partitions: PARTITIONS,
            placing: placing.to_owned(),
            ..Settings::new(name, format!("{name}:7400"))
        };
        let cluster = Cluster::join(Arc::clone(&way) as _, settings, Arc::new(host)).await.unwrap();
        Self { cluster, way }
    }

    pub(crate) fn serves(&self) -> usize {
        self.cluster.view().here.len()
    }
}

/// Owns partitions and keeps its leases, as an engine would.
struct Keeper {
    store: Arc<Faulty>,
    node: String,
    cannot_read: Option<Partition>,
    lines: Lines,
}

struct Kept {
    store: Arc<Faulty>,
    owner: Mutex<Ownership>,
    ended: watch::Sender<bool>,
}

impl Host for Keeper {
    fn call_at(&self, address: String) -> Later<'_, Answered> {
        let name = address.split(':').next().unwrap_or_default().to_owned();
        let is_me = name == self.node;
        let usual = if is_me { Answered::Here } else { Answered::Node { name, differs: None } };
        let answered = self.lines.lock().unwrap().get(&address).cloned().unwrap_or(usual);
        Box::pin(std::future::ready(answered))
    }

    fn prepare(&self) -> Later<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn take_on(&self, partition: Partition) -> Later<'_, Result<Arc<dyn Tenant>, Declined>> {
        Box::pin(async move {
            if self.cannot_read == Some(partition) {
                return Err(Declined { why: "a newer version wrote it".into(), unreadable: true });
            }
            let declined =
                |error: tidegate_store::Error| Declined { why: error.to_string(), unreadable: false };
            let owner = self.store.own(partition, &self.node, LEASE).await.map_err(declined)?;
            let kept = Kept {
                store: Arc::clone(&self.store),
                owner: Mutex::new(owner),
                ended: watch::channel(false).0,
            };
            let kept = Arc::new(kept);
            tokio::spawn(Arc::clone(&kept).keep());
            Ok(kept as Arc<dyn Tenant>)
        })
    }
}

impl Kept {
    /// Renews, and writes a little; the first word of another owner ends it.
    async fn keep(self: Arc<Self>) {
        while !*self.ended.borrow() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let owner = *self.owner.lock().unwrap();
            let renewed = self.store.renew(owner, LEASE).await;
            let appended = self.store.append(owner, Batch::default()).await;
            if let Ok(owner) = renewed {
                *self.owner.lock().unwrap() = owner;
            }
            if appended.is_err_and(|error| error.kind() == Kind::Fenced) {
                self.ended.send_replace(true);
            }
        }
    }
}

impl Tenant for Kept {
    fn hand_over(&self) -> Later<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let owner = *self.owner.lock().unwrap();
            self.store.release(owner).await.unwrap();
            self.ended.send_replace(true);
        })
    }

    fn ended(&self) -> Later<'_, String> {
        Box::pin(async move {
            let mut ended = self.ended.subscribe();
            let _ = ended.wait_for(|ended| *ended).await;
            "a newer owner exists".to_owned()
        })
    }
}

/// How many partitions each node owns, by what the store says.
pub(crate) async fn owned(store: &Arc<dyn Store>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for owner in store.owners().await.unwrap() {
        *counts.entry(owner.node).or_default() += 1;
    }
    counts
}

/// Waits until the store says so; answers how long that took.
pub(crate) async fn until(store: &Arc<dyn Store>, expected: &[(&str, usize)]) -> Duration {
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
