//! What earlier runs wrote down, as the planner needs it: which object has which key, and the state that it was last
//! brought to. It is an aid and no truth: where it is lost, objects are found by their names.

use std::collections::BTreeMap;

use crate::{Id, ObjectKey, ObjectKind};

/// The mapping (kind, key) → object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuildJournal {
    entries: BTreeMap<(ObjectKind, ObjectKey), GuildJournalEntry>,
}

/// One object that was made, changed or adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuildJournalEntry {
    /// Its id.
    pub id: Id,
    /// For a message: where it stands.
    pub channel: Option<Id>,
    /// The fingerprint of the state that it was brought to.
    pub fingerprint: String,
}

impl GuildJournal {
    /// What is known of a key.
    #[must_use]
    pub fn get(&self, kind: ObjectKind, key: &ObjectKey) -> Option<&GuildJournalEntry> {
        self.entries.get(&(kind, key.clone()))
    }

    /// Writes a line; an older one of the same key is replaced.
    pub fn record(&mut self, kind: ObjectKind, key: ObjectKey, entry: GuildJournalEntry) {
        self.entries.insert((kind, key), entry);
    }

    /// Takes a line out: the object is gone.
    pub fn forget(&mut self, kind: ObjectKind, key: &ObjectKey) {
        self.entries.remove(&(kind, key.clone()));
    }

    /// All of a kind, by key.
    pub fn entries_of(&self, kind: ObjectKind) -> impl Iterator<Item = (&ObjectKey, &GuildJournalEntry)> {
        self.entries
            .iter()
            .filter(move |((known, _), _)| *known == kind)
            .map(|((_, key), entry)| (key, entry))
    }

    /// The keys that an object is known by: one, or an old one too.
    pub fn keys_of(&self, kind: ObjectKind, id: Id) -> impl Iterator<Item = &ObjectKey> {
        self.entries_of(kind).filter(move |(_, entry)| entry.id == id).map(|(key, _)| key)
    }

    /// A key that an object is known by.
    #[must_use]
    pub fn key_of(&self, kind: ObjectKind, id: Id) -> Option<&ObjectKey> {
        self.keys_of(kind, id).next()
    }
}
