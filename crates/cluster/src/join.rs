//! Joining and leaving: the handle that a process has on its cluster.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::{Result, Store};
use tokio::sync::{mpsc, oneshot, watch};

use crate::host::PartitionHost;
use crate::member::Member;
use crate::view::{ClusterView, PartitionRoute};

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the node, unique in the store. A process that returns under its old name takes
    /// over from itself at once.
    pub node: String,
    /// The address at which other nodes reach this one.
    pub address: String,
    /// A hash of everything that decides which partition an operation belongs to. Nodes with
    /// different hashes never share a store's work.
    pub placement_hash: String,
    /// The number of partitions. The store keeps the number that was requested first.
    pub partitions: Partition,
    /// How long the node counts as alive without a heartbeat.
    pub ttl: Duration,
    /// How often the node looks at the state of the cluster in the store.
    pub every: Duration,
}

impl Settings {
    /// Creates settings with the default times.
    #[must_use]
    pub fn new(node: impl Into<String>, address: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            address: address.into(),
            placement_hash: String::new(),
            partitions: 16,
            ttl: Duration::from_secs(5),
            every: Duration::from_secs(1),
        }
    }
}

pub(crate) enum MemberCommand {
    /// Look at the store now.
    Look,
    /// Hand over everything and leave.
    Leave(oneshot::Sender<()>),
}

/// This node's membership in the cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cluster {
    view: watch::Receiver<ClusterView>,
    commands: mpsc::Sender<MemberCommand>,
}

/// The number of queued commands; one to look is as good as many.
const ORDERS_MAX: usize = 4;

impl Cluster {
    /// Joins the cluster: starts a task that reads the register, publishes this node once nothing
    /// speaks against it, and acquires its share of the partitions.
    ///
    /// # Errors
    /// When the store cannot be reached or read.
    pub async fn join(
        store: Arc<dyn Store>,
        settings: Settings,
        host: Arc<dyn PartitionHost>,
    ) -> Result<Self> {
        let partitions = store.ensure_partitions(settings.partitions).await?;
        let first = ClusterView { this_node: settings.node.clone(), partitions, ..ClusterView::default() };
        let (tell, view) = watch::channel(first);
        let (orders, inbox) = mpsc::channel(ORDERS_MAX);
        tokio::spawn(Member::new(store, settings, host, tell).run(inbox));
        Ok(Self { view, commands: orders })
    }

    /// Returns the current view.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        self.view.borrow().clone()
    }

    /// Returns whether this node has joined.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.view.borrow().joined
    }

    /// The number of partitions.
    #[must_use]
    pub fn partitions(&self) -> Partition {
        self.view.borrow().partitions
    }

    /// Returns where a partition is served, as far as is known.
    #[must_use]
    pub fn route(&self, partition: Partition) -> PartitionRoute {
        self.view.borrow().route(partition)
    }

    /// Waits until the route of a partition differs from `stale`, for at most `most`, and returns
    /// the current route. Makes the node look at the store.
    pub async fn route_after(
        &self,
        partition: Partition,
        stale: &PartitionRoute,
        most: Duration,
    ) -> PartitionRoute {
        let mut view = self.view.clone();
        // A node that is already looking needs no second command.
        let _ = self.commands.try_send(MemberCommand::Look);
        let changed = view.wait_for(|view| view.route(partition) != *stale);
        // Changed or timed out: the current view counts either way.
        let _ = tokio::time::timeout(most, changed).await;
        self.route(partition)
    }

    /// Waits until the view changes.
    pub async fn changed(&mut self) {
        // When the member has ended, nothing changes any more.
        if self.view.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this node has joined or reports why it has not, for at most `most`, and returns
    /// the view.
    pub async fn wait_until_decided(&self, most: Duration) -> ClusterView {
        let mut view = self.view.clone();
        let settled = view.wait_for(|view| view.joined || view.problem.is_some());
        // Decided or timed out: the current view counts either way.
        let _ = tokio::time::timeout(most, settled).await;
        self.view()
    }

    /// Hands over every partition and leaves.
    pub async fn leave(&self) {
        let (done, gone) = oneshot::channel();
        if self.commands.send(MemberCommand::Leave(done)).await.is_ok() {
            // Acknowledged, or the member has ended: it has left either way.
            let _ = gone.await;
        }
    }
}
