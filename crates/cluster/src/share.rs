//! Who should own which partition: as even as can be, and with as few changes as that allows. Every node works it out
//! for itself from what the store says; when two come to different answers for a moment, the store's lease decides.

use std::collections::BTreeMap;

use tidegate_core::id::Partition;

/// The node that each partition should be owned by. `nodes` are those that are there, each once; `owners` are those
/// that own something now, whether they are there or not.
pub(crate) fn share<'a>(
    nodes: &[&'a str],
    owners: &BTreeMap<Partition, &str>,
    partitions: Partition,
) -> BTreeMap<Partition, &'a str> {
    let mut shares = BTreeMap::new();
    if nodes.is_empty() {
        return shares;
    }
    let mut desks: Vec<Desk<'a>> =
        nodes.iter().map(|node| Desk { node, owns: Vec::new(), keeps: 0 }).collect();
    desks.sort_by_key(|desk| desk.node);
    for (partition, owner) in owners.iter().filter(|(partition, _)| **partition < partitions) {
        if let Some(desk) = desks.iter_mut().find(|desk| desk.node == *owner) {
            desk.owns.push(*partition);
        }
    }
    // Those who own most keep one more, where it does not come out even.
    desks.sort_by_key(|desk| (std::cmp::Reverse(desk.owns.len()), desk.node));
    let (each, mut more) = (usize::from(partitions) / desks.len(), usize::from(partitions) % desks.len());
    for desk in &mut desks {
        let most = each + usize::from(more > 0);
        more = more.saturating_sub(1);
        desk.owns.truncate(most);
        desk.keeps = most - desk.owns.len();
        shares.extend(desk.owns.iter().map(|partition| (*partition, desk.node)));
    }
    let mut free =
        (0..partitions).filter(|partition| !shares.contains_key(partition)).collect::<Vec<_>>().into_iter();
    for desk in &desks {
        shares.extend(free.by_ref().take(desk.keeps).map(|partition| (partition, desk.node)));
    }
    shares
}

struct Desk<'a> {
    node: &'a str,
    owns: Vec<Partition>,
    /// How many more it should own.
    keeps: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["ann", "ben", "cleo", "dan", "eve", "finn"];

    fn counts<'a>(shares: &BTreeMap<Partition, &'a str>) -> BTreeMap<&'a str, usize> {
        let mut counts = BTreeMap::new();
        for node in shares.values() {
            *counts.entry(*node).or_default() += 1;
        }
        counts
    }

    proptest! {
        /// Every partition has one owner that is there, nobody has two more than another, and who keeps what it has
        /// is moved only as far as that needs.
        #[test]
        fn shares_are_even_and_move_little(
            there in prop::sample::subsequence(NAMES.to_vec(), 1..=6),
            owned in prop::collection::btree_map(0_u16..40, 0_usize..6, 0..40),
            partitions in 1_u16..40,
        ) {
            let owners: BTreeMap<Partition, &str> = owned.iter().map(|(place, node)| (*place, NAMES[*node])).collect();
            let shares = share(&there, &owners, partitions);
            prop_assert_eq!(shares.len(), usize::from(partitions));
            prop_assert!(shares.values().all(|node| there.contains(node)));
            let counts = counts(&shares);
            let of = |node: &str| counts.get(node).copied().unwrap_or(0);
            let (least, most) = (there.iter().map(|n| of(n)).min(), there.iter().map(|n| of(n)).max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{:?}", counts);
            for node in &there {
                let had = owners.iter().filter(|(p, owner)| **p < partitions && *owner == node).count();
                let kept = shares.iter().filter(|(p, owner)| *owner == node && owners.get(p) == Some(node)).count();
                prop_assert!(kept == had || kept == of(node), "{node} had {had}, kept {kept} of {}", of(node));
            }
            // Nobody has to talk to anybody: the order in which nodes are listed does not matter, and what is shared
            // out already stays.
            let reversed: Vec<_> = there.iter().rev().copied().collect();
            prop_assert_eq!(&share(&reversed, &owners, partitions), &shares);
            prop_assert_eq!(&share(&there, &shares, partitions), &shares);
        }
    }
}
