//! A paged slab. It grows without moving existing values, so that a long queue causes no pause, and
//! frees the memory of a page when the page becomes empty.

use std::ops::{Index, IndexMut};

use slab::Slab;

/// The number of values on a page.
const PAGE: usize = 1_024;

/// A collection of values addressed by index.
#[derive(Debug)]
pub(super) struct Arena<T> {
    pages: Vec<Slab<T>>,
    /// Pages that are not full.
    roomy: Vec<u32>,
    len: usize,
}

impl<T> Arena<T> {
    pub(super) const fn new() -> Self {
        Self { pages: Vec::new(), roomy: Vec::new(), len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Inserts a value and returns its index.
    pub(super) fn insert(&mut self, value: T) -> usize {
        let page = self.roomy.last().map_or(self.pages.len(), |page| *page as usize);
        if page == self.pages.len() {
            self.pages.push(Slab::new());
            self.roomy.push(u32::try_from(page).unwrap_or(u32::MAX));
        }
        let values = &mut self.pages[page];
        if values.capacity() == 0 {
            values.reserve_exact(PAGE);
        }
        let place = values.insert(value);
        if values.len() == PAGE {
            self.roomy.pop();
        }
        self.len += 1;
        page * PAGE + place
    }

    /// Removes the value at `at`, which must exist.
    pub(super) fn remove(&mut self, at: usize) -> T {
        let page = at / PAGE;
        let values = &mut self.pages[page];
        let value = values.remove(at % PAGE);
        if values.len() + 1 == PAGE {
            self.roomy.push(u32::try_from(page).unwrap_or(u32::MAX));
        }
        if values.is_empty() {
            *values = Slab::new();
        }
        self.len -= 1;
        value
    }
}

impl<T> Index<usize> for Arena<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        #[cfg(test)]
        crate::steps::count();
        &self.pages[at / PAGE][at % PAGE]
    }
}

impl<T> IndexMut<usize> for Arena<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        #[cfg(test)]
        crate::steps::count();
        &mut self.pages[at / PAGE][at % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// After any inserts and removals, each value is found at its index, and an empty page
        /// holds no memory.
        #[test]
        fn it_keeps_what_it_was_given(steps in prop::collection::vec((any::<u16>(), 0_u8..5), 0..6_000)) {
            let (mut arena, mut known) = (Arena::new(), BTreeMap::new());
            for (value, step) in steps {
                let first = known.keys().copied().nth(usize::from(value) % known.len().max(1));
                match first {
                    Some(at) if step == 0 => prop_assert_eq!(Some(arena.remove(at)), known.remove(&at)),
                    _ => prop_assert_eq!(known.insert(arena.insert(value), value), None),
                }
            }
            prop_assert_eq!(arena.len(), known.len());
            prop_assert!(known.iter().all(|(at, value)| arena[*at] == *value));
            for at in known.into_keys() {
                arena.remove(at);
            }
            prop_assert!(arena.pages.iter().all(|page| page.capacity() == 0));
            prop_assert_eq!(arena.roomy.len(), arena.pages.len());
        }
    }
}
