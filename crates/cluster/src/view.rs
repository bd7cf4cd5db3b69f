//! What a node knows of the others, as of its last look at the store.

use std::collections::BTreeMap;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::Tenancy;
use tidegate_store::nodes::Node;

/// Nodes and owners at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// This node's name.
    pub me: String,
    /// How many partitions there are.
    pub partitions: Partition,
    /// Whether this node takes part.
    pub joined: bool,
    /// What is wrong with its part, in a sentence; while it has not joined, why it does not.
    pub trouble: Option<String>,
    /// Who is there, by name.
    pub nodes: Vec<Node>,
    /// Who owns what.
    pub owners: BTreeMap<Partition, Tenancy>,
    /// What this node serves.
    pub here: Vec<Partition>,
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
pub enum Route {
    /// By this node.
    Here,
    /// By this one.
    At(Node),
    /// By nobody, for now: its owner has gone and the next one has not come.
    Nobody,
}

impl View {
    /// Where a partition is served.
    #[must_use]
    pub fn route(&self, partition: Partition) -> Route {
        if self.here.contains(&partition) {
            return Route::Here;
        }
        // One of its own that it does not serve was another process's of the same name.
        let owner = self.owners.get(&partition).filter(|owner| owner.node != self.me);
        let node = owner.and_then(|owner| self.nodes.iter().find(|node| node.name == owner.node));
        node.map_or(Route::Nobody, |node| Route::At(node.clone()))
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
