//! An index of operations by sequence number. Sequence numbers are consecutive, so neighbors share
//! a page: a queue of a million costs about four bytes per operation, and one that lingers alone
//! costs a page.

use std::collections::BTreeMap;

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
    pages: BTreeMap<u64, Page>,
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
        let page = self
            .pages
            .entry(page)
            .or_insert_with(|| Page { places: Box::new([None; PAGE as usize]), used: 0 });
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
            }
        }
    }

    /// The oldest entry.
    pub(super) fn oldest(&self) -> Option<EntryIx> {
        // A page without entries is removed.
        self.pages.first_key_value()?.1.places.iter().find_map(|ix| *ix)
    }

    /// Iterates over all entries below `before`, newest first.
    pub(super) fn newest_first(&self, before: Option<Seq>) -> impl Iterator<Item = (Seq, EntryIx)> + '_ {
        let (last_page, last_place) = before.map_or((u64::MAX, PAGE as usize), split);
        self.pages.range(..=last_page).rev().flat_map(move |(number, page)| {
            let end = if *number == last_page { last_place } else { PAGE as usize };
            let places = page.places[..end].iter().enumerate().rev();
            places.filter_map(move |(place, ix)| Some((Seq(number * PAGE + place as u64), (*ix)?)))
        })
    }
}

#[cfg(test)]
mod tests {
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
            prop_assert!(paged.pages.values().all(|page| page.used > 0));
        }
    }
}
