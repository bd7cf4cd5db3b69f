//! What nodes publish in the register: a leaving node can still be reached, but is given nothing
//! more to own.

use tidegate_store::nodes::Node;

use crate::share::Candidate;

/// The nodes that stay, as candidates for partitions.
pub(crate) fn candidates(nodes: &[Node]) -> Vec<Candidate> {
    let staying = nodes.iter().filter(|node| !node.record.leaving);
    staying
        .map(|node| Candidate { node: node.name.clone(), unreadable: node.record.unreadable.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidegate_core::Time;
    use tidegate_store::nodes::NodeRecord;

    use super::*;

    #[test]
    fn a_node_that_leaves_gets_nothing() {
        let unreadable = BTreeSet::from([3, 12]);
        let node = |name: &str, leaving: bool| {
            let record = NodeRecord { leaving, unreadable: unreadable.clone(), ..NodeRecord::at("a:1") };
            Node { name: name.into(), record, until: Time::ZERO }
        };
        let found = candidates(&[node("ann", false), node("ben", true)]);
        assert_eq!(found, [Candidate { node: "ann".into(), unreadable }]);
    }
}
