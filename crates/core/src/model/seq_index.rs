//! An index of operations by sequence number. Sequence numbers are consecutive, so neighbors share
//! a page: a queue of a million costs about four bytes per operation, and one that lingers alone
//! costs a page.

use std::collections::{BTreeSet, hash_map};

use rustc_hash::FxHashMap;

use super::entry::EntryIx;
use crate::id::Seq;

/// Sequence numbers per page.
const PAGE: u64 = 64;

#[derive(Debug)]
struct Page {
    places: Box<[Option<EntryIx>; PAGE as usize]>,
    used: u8,
}

/// A map from sequence numbers to entry indexes.
#[derive(Debug, Default)]
pub(super) struct SeqIndex {
    /// By number: each step of an operation looks it up several times.
    pages: FxHashMap<u64, Page>,
    /// The numbers of the pages, for lists.
    order: BTreeSet<u64>,
}

const fn split(seq: Seq) -> (u64, usize) {
    (seq.0 / PAGE, (seq.0 % PAGE) as usize)
}

impl SeqIndex {
    pub(super) fn get(&self, seq: Seq) -> Option<EntryIx> {
        let (page, place) = split(seq);
        self.pages.get(&page)?.places[place]
    }

    /// Inserts an entry; a sequence number keeps its index for as long as it is in the map.
    pub(super) fn insert(&mut self, seq: Seq, ix: EntryIx) {
        let (page, place) = split(seq);
        let page = match self.pages.entry(page) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(vacant) => {
                self.order.insert(page);
                vacant.insert(Page { places: Box::new([None; PAGE as usize]), used: 0 })
            }
        };
        if page.places[place].replace(ix).is_none() {
            page.used += 1;
        }
    }

    pub(super) fn remove(&mut self, seq: Seq) {
        let (number, place) = split(seq);
        let Some(page) = self.pages.get_mut(&number) else { return };
        if page.places[place].take().is_some() {
            page.used -= 1;
            if page.used == 0 {
                self.pages.remove(&number);
                self.order.remove(&number);
            }
        }
    }

    /// Iterates over all entries, oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = EntryIx> + '_ {
        let pages = self.order.iter().filter_map(|number| self.pages.get(number));
        pages.flat_map(|page| page.places.iter().filter_map(|ix| *ix))
    }

    /// Iterates over all entries below `before`, newest first.
    pub(super) fn newest_first(&self, before: Option<Seq>) -> impl Iterator<Item = (Seq, EntryIx)> + '_ {
        let (last_page, last_place) = before.map_or((u64::MAX, PAGE as usize), split);
        let pages = self.order.range(..=last_page).rev();
        let pages = pages.filter_map(|number| Some((number, self.pages.get(number)?)));
        pages.flat_map(move |(number, page)| {
            let end = if *number == last_page { last_place } else { PAGE as usize };
            let places = page.places[..end].iter().enumerate().rev();
            places.filter_map(move |(place, ix)| Some((Seq(number * PAGE + place as u64), (*ix)?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// After any inserts and removals it equals a plain map and keeps no unneeded page.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..300, any::<bool>()), 0..400), before in prop::option::of(0_u64..300)) {
            let (mut paged, mut plain) = (SeqIndex::default(), BTreeMap::new());
            for (place, (seq, insert)) in steps.into_iter().enumerate() {
                let (seq, ix) = (Seq(seq), EntryIx::new(place));
                if insert {
                    paged.insert(seq, ix);
                    plain.insert(seq, ix);
                } else {
                    paged.remove(seq);
                    plain.remove(&seq);
                }
                prop_assert_eq!(paged.get(seq), plain.get(&seq).copied());
            }
            let before = before.map(Seq);
            let expected: Vec<_> = plain
                .iter()
                .rev()
                .filter(|(seq, _)| before.is_none_or(|before| **seq < before))
                .map(|(seq, ix)| (*seq, *ix))
                .collect();
            prop_assert_eq!(paged.newest_first(before).collect::<Vec<_>>(), expected);
            let oldest_first: Vec<_> = plain.values().copied().collect();
            prop_assert_eq!(paged.oldest_first().collect::<Vec<_>>(), oldest_first);
            prop_assert!(paged.pages.values().all(|page| page.used > 0));
            prop_assert_eq!(paged.order.len(), paged.pages.len());
        }
    }
}
