//! Computes which node should own which partition: as evenly as possible, with as few moves as that
//! allows. Every node computes it for itself from the state in the store; when two nodes disagree
//! for a moment, the store's lease decides.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::id::Partition;

/// A node that may own partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub node: String,
    /// The partitions that it cannot read and is not given.
    pub unreadable: BTreeSet<Partition>,
}

/// A node and its share so far.
struct Share<'a> {
    candidate: &'a Candidate,
    owns: BTreeSet<Partition>,
}

/// Assigns each partition to a node, or to none where no node can read it. `desks` are the live
/// nodes, each once; `owners` are the current owners, alive or not. The result is stable: computing
/// it again from the result moves nothing.
pub(crate) fn share<'a>(
    desks: &'a [Candidate],
    owners: &BTreeMap<Partition, &str>,
    partitions: Partition,
) -> BTreeMap<Partition, &'a str> {
    let mut shares: Vec<Share<'a>> =
        desks.iter().map(|desk| Share { candidate: desk, owns: BTreeSet::new() }).collect();
    shares.sort_by_key(|share| &share.candidate.node);
    for partition in 0..partitions {
        let owner = owners.get(&partition);
        let its = |share: &&mut Share<'a>| {
            owner == Some(&share.candidate.node.as_str()) && share.can_own(partition)
        };
        if let Some(share) = shares.iter_mut().find(its) {
            share.owns.insert(partition);
        }
    }
    let kept: BTreeSet<Partition> = shares.iter().flat_map(|share| &share.owns).copied().collect();
    for partition in (0..partitions).filter(|partition| !kept.contains(partition)) {
        let can = shares.iter_mut().filter(|share| share.can_own(partition));
        if let Some(share) = can.min_by_key(|share| share.owns.len()) {
            share.owns.insert(partition);
        }
    }
    while let Some((partition, from, to)) = next_move(&shares) {
        shares[from].owns.remove(&partition);
        shares[to].owns.insert(partition);
    }
    let owned =
        |share: Share<'a>| share.owns.into_iter().map(|partition| (partition, share.candidate.node.as_str()));
    shares.into_iter().flat_map(owned).collect()
}

/// Finds a move that makes the shares more even: away from the node that owns most, as far as a
/// node with less can read the partition.
fn next_move(shares: &[Share<'_>]) -> Option<(Partition, usize, usize)> {
    let mut from: Vec<usize> = (0..shares.len()).collect();
    from.sort_by_key(|place| std::cmp::Reverse((shares[*place].owns.len(), *place)));
    from.into_iter().find_map(|from| {
        let has = shares[from].owns.len();
        let mut less: Vec<usize> = (0..shares.len()).filter(|to| shares[*to].owns.len() + 1 < has).collect();
        less.sort_by_key(|to| shares[*to].owns.len());
        less.into_iter().find_map(|to| {
            let last = shares[from].owns.iter().rev().find(|partition| shares[to].can_own(**partition));
            last.map(|partition| (*partition, from, to))
        })
    })
}

impl Share<'_> {
    fn can_own(&self, partition: Partition) -> bool {
        !self.candidate.unreadable.contains(&partition)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["ann", "ben", "cleo", "dan", "eve", "finn"];

    fn desks(there: &[&'static str], without: &BTreeSet<(&str, Partition)>) -> Vec<Candidate> {
        let of =
            |node: &str| without.iter().filter(|(name, _)| *name == node).map(|(_, place)| *place).collect();
        there.iter().map(|node| Candidate { node: (*node).to_owned(), unreadable: of(node) }).collect()
    }

    fn counts<'a>(shares: &BTreeMap<Partition, &'a str>) -> BTreeMap<&'a str, usize> {
        let mut counts = BTreeMap::new();
        for node in shares.values() {
            *counts.entry(*node).or_default() += 1;
        }
        counts
    }

    proptest! {
        /// Every partition has one live owner, no node has two more than another, and no more
        /// partitions move than that needs.
        #[test]
        fn shares_are_even_and_move_little(
            there in prop::sample::subsequence(NAMES.to_vec(), 1..=6),
            owned in prop::collection::btree_map(0_u16..40, 0_usize..6, 0..40),
            partitions in 1_u16..40,
        ) {
            let owners: BTreeMap<Partition, &str> = owned.iter().map(|(place, node)| (*place, NAMES[*node])).collect();
            let desks = desks(&there, &BTreeSet::new());
            let shares = share(&desks, &owners, partitions);
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
            // No coordination is needed: the order in which nodes are listed does not matter, and a
            // finished assignment stays.
            let reversed: Vec<_> = desks.iter().rev().cloned().collect();
            prop_assert_eq!(&share(&reversed, &owners, partitions), &shares);
            prop_assert_eq!(&share(&desks, &shares, partitions), &shares);
        }

        /// OPS-8: a node that cannot read a partition is not given it; a node that can gets it and
        /// keeps it.
        #[test]
        fn ops_8_what_a_node_cannot_read_is_left_to_the_others(
            there in prop::sample::subsequence(NAMES.to_vec(), 1..=6),
            owned in prop::collection::btree_map(0_u16..40, 0_usize..6, 0..40),
            without in prop::collection::btree_set((0_usize..6, 0_u16..40), 0..60),
            partitions in 1_u16..40,
        ) {
            let owners: BTreeMap<Partition, &str> = owned.iter().map(|(place, node)| (*place, NAMES[*node])).collect();
            let without: BTreeSet<_> = without.iter().map(|(node, place)| (NAMES[*node], *place)).collect();
            let desks = desks(&there, &without);
            let shares = share(&desks, &owners, partitions);
            for partition in 0..partitions {
                let can: Vec<_> = there.iter().filter(|node| !without.contains(&(**node, partition))).collect();
                match shares.get(&partition) {
                    Some(node) => prop_assert!(can.contains(&node), "{partition} is given to {node}"),
                    None => prop_assert!(can.is_empty(), "{partition} is given to nobody of {can:?}"),
                }
            }
            prop_assert_eq!(&share(&desks, &shares, partitions), &shares);
        }
    }
}
