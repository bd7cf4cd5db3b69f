//! Joining and leaving: what a process holds of the cluster it is in.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::{Result, Store};
use tokio::sync::{mpsc, oneshot, watch};

use crate::host::PartitionHost;
use crate::member::Member;
use crate::view::{ClusterView, PartitionRoute};

/// How a node takes part.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name, unique in the store. A process that comes back under its old name takes over from itself at once.
    pub node: String,
    /// Where the others reach it.
    pub address: String,
    /// A hash of all that decides where an operation has its place. Nodes with different ones never share a store's work.
    pub placement_hash: String,
    /// Partitions to share out. The store keeps the number that was asked for first.
    pub partitions: Partition,
    /// How long it counts as there without a sign of life.
    pub ttl: Duration,
    /// How often it looks at what the others do.
    pub every: Duration,
}

impl Settings {
    /// With the usual times.
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
    /// Look now.
    Look,
    /// Hand everything over and go.
    Leave(oneshot::Sender<()>),
}

/// This node's part in the cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cluster {
    view: watch::Receiver<ClusterView>,
    commands: mpsc::Sender<MemberCommand>,
}

/// Orders that may wait; one to look is as good as many.
const ORDERS_MAX: usize = 4;

impl Cluster {
    /// Joins: has a task of its own look around, say that this node is there once nothing speaks against it, and take on
    /// its share.
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

    /// What is known now.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        self.view.borrow().clone()
    }

    /// Whether this node takes part.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.view.borrow().joined
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> Partition {
        self.view.borrow().partitions
    }

    /// Where a partition is served, as far as is known.
    #[must_use]
    pub fn route(&self, partition: Partition) -> PartitionRoute {
        self.view.borrow().route(partition)
    }

    /// Where a partition is served once that has changed from `stale`, or what is known after `most`. Has the node look.
    pub async fn route_after(
        &self,
        partition: Partition,
        stale: &PartitionRoute,
        most: Duration,
    ) -> PartitionRoute {
        let mut view = self.view.clone();
        // A node that is looking already needs no second word.
        let _ = self.commands.try_send(MemberCommand::Look);
        let changed = view.wait_for(|view| view.route(partition) != *stale);
        // Changed, or the time is over: what is known counts either way.
        let _ = tokio::time::timeout(most, changed).await;
        self.route(partition)
    }

    /// Waits until something that is known has changed.
    pub async fn changed(&mut self) {
        // When the member has ended nothing changes any more.
        if self.view.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this node takes part or says why it does not, for so long at the most; what is known then.
    pub async fn wait_until_decided(&self, most: Duration) -> ClusterView {
        let mut view = self.view.clone();
        let settled = view.wait_for(|view| view.joined || view.problem.is_some());
        // Settled, or the time is over: what is known counts either way.
        let _ = tokio::time::timeout(most, settled).await;
        self.view()
    }

    /// Hands everything over and goes.
    pub async fn leave(&self) {
        let (done, gone) = oneshot::channel();
        if self.commands.send(MemberCommand::Leave(done)).await.is_ok() {
            // Told, or the member has ended: gone either way.
            let _ = gone.await;
        }
    }
}
