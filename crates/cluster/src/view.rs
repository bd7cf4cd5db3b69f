//! A node's view of the cluster, as of its last look at the store.

use std::collections::BTreeMap;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;
use tidegate_store::nodes::Node;

/// The nodes and owners at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// This node's name.
    pub this_node: String,
    /// The number of partitions.
    pub partitions: Partition,
    /// Whether this node has joined.
    pub joined: bool,
    /// What is wrong with this node's membership, in a sentence; while it has not joined, the
    /// reason.
    pub problem: Option<String>,
    /// The nodes that are alive, by name.
    pub nodes: Vec<Node>,
    /// The owner of each partition.
    pub owners: BTreeMap<Partition, PartitionOwner>,
    /// The partitions that this node serves.
    pub local_partitions: Vec<Partition>,
}

/// A partition, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// The number of the partition.
    pub partition: Partition,
    /// The node that owns it.
    pub node: Option<String>,
    /// The epoch of the owner; 0 without an owner.
    pub epoch: u64,
    /// When the ownership expires.
    pub until: Option<Time>,
}

/// The node that serves a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionRoute {
    /// Served by this node.
    ThisNode,
    /// Served by another node.
    OtherNode(Node),
    /// Served by no node, for now: its owner has gone and the next one has not acquired it.
    Unowned,
}

impl ClusterView {
    /// Returns where a partition is served.
    #[must_use]
    pub fn route(&self, partition: Partition) -> PartitionRoute {
        if self.local_partitions.contains(&partition) {
            return PartitionRoute::ThisNode;
        }
        // A partition that this node owns but does not serve belonged to another process of the
        // same name.
        let owner = self.owners.get(&partition).filter(|owner| owner.node != self.this_node);
        let node = owner.and_then(|owner| self.nodes.iter().find(|node| node.name == owner.node));
        node.map_or(PartitionRoute::Unowned, |node| PartitionRoute::OtherNode(node.clone()))
    }

    /// Lists every partition.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionView> + '_ {
        (0..self.partitions).map(|partition| {
            let owner = self.owners.get(&partition);
            PartitionView {
                partition,
                node: owner.map(|owner| owner.node.clone()),
                epoch: owner.map_or(0, |owner| owner.epoch.0),
                until: owner.map(|owner| owner.until),
            }
        })
    }
}
