//! What a node knows of the others, as of its last look at the store.

use std::collections::BTreeMap;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;
use tidegate_store::nodes::Node;

/// Nodes and owners at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// This node's name.
    pub this_node: String,
    /// How many partitions there are.
    pub partitions: Partition,
    /// Whether this node takes part.
    pub joined: bool,
    /// What is wrong with its part, in a sentence; while it has not joined, why it does not.
    pub problem: Option<String>,
    /// Who is there, by name.
    pub nodes: Vec<Node>,
    /// Who owns what.
    pub owners: BTreeMap<Partition, PartitionOwner>,
    /// What this node serves.
    pub local_partitions: Vec<Partition>,
}

/// A partition, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// Which.
    pub partition: Partition,
    /// Who owns it.
    pub node: Option<String>,
    /// With which epoch; 0 when nobody does.
    pub epoch: u64,
    /// Until when.
    pub until: Option<Time>,
}

/// Where a partition is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionRoute {
    /// By this node.
    ThisNode,
    /// By this one.
    OtherNode(Node),
    /// By nobody, for now: its owner has gone and the next one has not come.
    Unowned,
}

impl ClusterView {
    /// Where a partition is served.
    #[must_use]
    pub fn route(&self, partition: Partition) -> PartitionRoute {
        if self.local_partitions.contains(&partition) {
            return PartitionRoute::ThisNode;
        }
        // One of its own that it does not serve was another process's of the same name.
        let owner = self.owners.get(&partition).filter(|owner| owner.node != self.this_node);
        let node = owner.and_then(|owner| self.nodes.iter().find(|node| node.name == owner.node));
        node.map_or(PartitionRoute::Unowned, |node| PartitionRoute::OtherNode(node.clone()))
    }

    /// Every partition.
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
