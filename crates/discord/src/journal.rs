//! The journal of earlier runs, as the planner needs it: which object has which key, and the state
//! it was last brought to. It is an aid, not the truth: where it is lost, objects are found by
//! their names.

use std::collections::BTreeMap;

use crate::{Id, ObjectKey, ObjectKind};

/// The mapping (kind, key) → object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuildJournal {
    entries: BTreeMap<(ObjectKind, ObjectKey), GuildJournalEntry>,
}

/// One object that was created, changed or adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuildJournalEntry {
    /// Its id.
    pub id: Id,
    /// The channel of a message.
    pub channel: Option<Id>,
    /// The fingerprint of the state it was brought to.
    pub fingerprint: String,
}

impl GuildJournal {
    /// Returns the entry of a key.
    #[must_use]
    pub fn get(&self, kind: ObjectKind, key: &ObjectKey) -> Option<&GuildJournalEntry> {
        self.entries.get(&(kind, key.clone()))
    }

    /// Records an entry; replaces an older one of the same key.
    pub fn record(&mut self, kind: ObjectKind, key: ObjectKey, entry: GuildJournalEntry) {
        self.entries.insert((kind, key), entry);
    }

    /// Removes an entry: the object is gone.
    pub fn forget(&mut self, kind: ObjectKind, key: &ObjectKey) {
        self.entries.remove(&(kind, key.clone()));
    }

    /// Yields all entries of a kind, by key.
    pub fn entries_of(&self, kind: ObjectKind) -> impl Iterator<Item = (&ObjectKey, &GuildJournalEntry)> {
        self.entries
            .iter()
            .filter(move |((known, _), _)| *known == kind)
            .map(|((_, key), entry)| (key, entry))
    }

    /// Yields the keys of an object: one, or an old one too.
    pub fn keys_of(&self, kind: ObjectKind, id: Id) -> impl Iterator<Item = &ObjectKey> {
        self.entries_of(kind).filter(move |(_, entry)| entry.id == id).map(|(key, _)| key)
    }

    /// Returns a key of an object.
    #[must_use]
    pub fn key_of(&self, kind: ObjectKind, id: Id) -> Option<&ObjectKey> {
        self.keys_of(kind, id).next()
    }
}
