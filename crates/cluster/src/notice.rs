//! What a node puts up in the register: where it is reached, whether it is about to leave, and what it cannot read. One
//! that leaves is still reached, and is given nothing more to own. Words that are not known are passed over, so that a
//! later version may add some.

use std::collections::BTreeSet;

use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;

use crate::share::Desk;

const LEAVING: &str = "leaving";
const WITHOUT: &str = "without=";

/// The text of a notice.
pub(crate) fn notice(address: &str, leaving: bool, without: &BTreeSet<Partition>) -> String {
    let mut notice = address.to_owned();
    if leaving {
        notice = format!("{notice} {LEAVING}");
    }
    if !without.is_empty() {
        let list: Vec<_> = without.iter().map(ToString::to_string).collect();
        notice = format!("{notice} {WITHOUT}{}", list.join(","));
    }
    notice
}

/// Reads notices: the nodes with plain addresses, and what those that stay may be given.
pub(crate) fn read(nodes: Vec<Node>) -> (Vec<Node>, Vec<Desk>) {
    let mut staying = Vec::new();
    let plain = nodes.into_iter().map(|node| {
        let mut words = node.address.split(' ');
        let address = words.next().unwrap_or_default().to_owned();
        let words: Vec<&str> = words.collect();
        if !words.contains(&LEAVING) {
            let lists = words.iter().filter_map(|word| word.strip_prefix(WITHOUT));
            let without = lists.flat_map(|list| list.split(',')).filter_map(|number| number.parse().ok());
            staying.push(Desk { node: node.name.clone(), without: without.collect() });
        }
        Node { address, ..node }
    });
    let plain = plain.collect();
    (plain, staying)
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
            node("ann", notice("127.0.0.1:7400", false, &BTreeSet::new())),
            node("ben", notice("127.0.0.1:7400", true, &without)),
            node("cleo", notice("127.0.0.1:7400", false, &without)),
            node("dan", "127.0.0.1:7400 a=word of=later".into()),
        ];
        let (nodes, staying) = read(put_up.into());
        assert!(nodes.iter().all(|node| node.address == "127.0.0.1:7400"));
        let desk = |node: &str, without: &BTreeSet<_>| Desk { node: node.into(), without: without.clone() };
        let none = BTreeSet::new();
        assert_eq!(staying, [desk("ann", &none), desk("cleo", &without), desk("dan", &none)]);
    }
}
