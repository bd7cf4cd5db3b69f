//! What a node puts up in the register: where it is reached, and whether it is about to leave. One that leaves is still
//! reached, and is given nothing more to own.

use tidegate_store::nodes::Node;

const LEAVING: &str = " leaving";

/// The text of a notice.
pub(crate) fn notice(address: &str, leaving: bool) -> String {
    if leaving { format!("{address}{LEAVING}") } else { address.to_owned() }
}

/// Reads notices: the nodes with plain addresses, and the names of those that stay.
pub(crate) fn read(nodes: Vec<Node>) -> (Vec<Node>, Vec<String>) {
    let mut staying = Vec::new();
    let plain = nodes.into_iter().map(|node| match node.address.strip_suffix(LEAVING) {
        Some(address) => Node { address: address.to_owned(), ..node },
        None => {
            staying.push(node.name.clone());
            node
        }
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
        let node = |name: &str, leaving| Node {
            name: name.into(),
            address: notice("127.0.0.1:7400", leaving),
            until: Time::ZERO,
        };
        let (nodes, staying) = read(vec![node("ann", false), node("ben", true)]);
        assert!(nodes.iter().all(|node| node.address == "127.0.0.1:7400"));
        assert_eq!(staying, ["ann"]);
    }
}
