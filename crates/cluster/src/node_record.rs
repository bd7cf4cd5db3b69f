//! The record that a node publishes in the register: its address, whether it is about to leave,
//! which partitions it cannot read, and how it places operations. A leaving node can still be
//! reached, but is given nothing more to own. Unknown words are ignored, so that a later version
//! may add some.

use std::collections::BTreeSet;

use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;

use crate::share::Candidate;

const LEAVING: &str = "leaving";
const WITHOUT: &str = "without=";
const PLACING: &str = "placing=";

/// A parsed record: the node with its plain address, and what it publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRecord {
    pub node: Node,
    pub leaving: bool,
    pub unreadable: BTreeSet<Partition>,
    /// `None` if an older version published the record.
    pub placement_hash: Option<String>,
}

/// Encodes a record.
pub(crate) fn encode_record(
    address: &str,
    leaving: bool,
    without: &BTreeSet<Partition>,
    placing: &str,
) -> String {
    let mut notice = address.to_owned();
    if leaving {
        notice = format!("{notice} {LEAVING}");
    }
    if !without.is_empty() {
        let list: Vec<_> = without.iter().map(ToString::to_string).collect();
        notice = format!("{notice} {WITHOUT}{}", list.join(","));
    }
    if !placing.is_empty() {
        notice = format!("{notice} {PLACING}{placing}");
    }
    notice
}

/// Parses a record.
pub(crate) fn parse_record(node: Node) -> NodeRecord {
    let mut words = node.address.split(' ');
    let address = words.next().unwrap_or_default().to_owned();
    let words: Vec<&str> = words.collect();
    let leaving = words.contains(&LEAVING);
    let lists = words.iter().filter_map(|word| word.strip_prefix(WITHOUT));
    let without = lists.flat_map(|list| list.split(',')).filter_map(|number| number.parse().ok()).collect();
    let placing = words.iter().find_map(|word| word.strip_prefix(PLACING)).map(str::to_owned);
    NodeRecord { node: Node { address, ..node }, leaving, unreadable: without, placement_hash: placing }
}

/// The nodes that stay, as candidates for partitions.
pub(crate) fn candidates(signs: &[NodeRecord]) -> Vec<Candidate> {
    let staying = signs.iter().filter(|sign| !sign.leaving);
    staying
        .map(|sign| Candidate { node: sign.node.name.clone(), unreadable: sign.unreadable.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;

    use super::*;

    #[test]
    fn a_node_that_leaves_is_still_reached() {
        let node = |name: &str, address: String| Node { name: name.into(), address, until: Time::ZERO };
        let without = BTreeSet::from([3, 12]);
        let put_up = [
            node("ann", encode_record("127.0.0.1:7400", false, &BTreeSet::new(), "")),
            node("ben", encode_record("127.0.0.1:7400", true, &without, "7f")),
            node("cleo", encode_record("127.0.0.1:7400", false, &without, "7f")),
            node("dan", "127.0.0.1:7400 a=word of=later".into()),
        ];
        let signs = put_up.map(parse_record);
        assert!(signs.iter().all(|sign| sign.node.address == "127.0.0.1:7400"));
        let placing = signs.each_ref().map(|sign| sign.placement_hash.as_deref());
        assert_eq!(placing, [None, Some("7f"), Some("7f"), None]);
        let desk =
            |node: &str, without: &BTreeSet<_>| Candidate { node: node.into(), unreadable: without.clone() };
        let none = BTreeSet::new();
        assert_eq!(candidates(&signs), [desk("ann", &none), desk("cleo", &without), desk("dan", &none)]);
    }
}
