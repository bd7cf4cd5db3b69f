//! What earlier runs wrote down, as the planner needs it: which object has which key, and the state that it was last
//! brought to. It is an aid and no truth: where it is lost, objects are found by their names.

use std::collections::BTreeMap;

use crate::{Id, Key, Kind};

/// The mapping (kind, key) → object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    entries: BTreeMap<(Kind, Key), Entry>,
}

/// One object that was made, changed or adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: Id,
    /// For a message: where it stands.
    pub channel: Option<Id>,
    /// The fingerprint of the state that it was brought to.
    pub fingerprint: String,
}

impl Journal {
    /// What is known of a key.
    #[must_use]
    pub fn get(&self, kind: Kind, key: &Key) -> Option<&Entry> {
        self.entries.get(&(kind, key.clone()))
    }

    /// Writes a line; an older one of the same key is replaced.
    pub fn record(&mut self, kind: Kind, key: Key, entry: Entry) {
        self.entries.insert((kind, key), entry);
    }

    /// Takes a line out: the object is gone.
    pub fn forget(&mut self, kind: Kind, key: &Key) {
        self.entries.remove(&(kind, key.clone()));
    }

    /// All of a kind, by key.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries
            .iter()
            .filter(move |((known, _), _)| *known == kind)
            .map(|((_, key), entry)| (key, entry))
    }

    /// The keys that an object is known by: one, or an old one too.
    pub fn keys_of(&self, kind: Kind, id: Id) -> impl Iterator<Item = &Key> {
        self.of(kind).filter(move |(_, entry)| entry.id == id).map(|(key, _)| key)
    }

    /// A key that an object is known by.
    #[must_use]
    pub fn key_of(&self, kind: Kind, id: Id) -> Option<&Key> {
        self.keys_of(kind, id).next()
    }
}
