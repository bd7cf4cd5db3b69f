//! An object that carries the key of a managed one by accident or on purpose, such as a channel
//! that a moderator named alike.

use std::fmt;

use crate::{Id, ObjectKey, ObjectKind};

/// An object with the key of another one that the journal knows. It is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namesake {
    /// Their kind.
    pub kind: ObjectKind,
    /// Their key.
    pub key: ObjectKey,
    /// The object that is not managed.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// The managed object.
    pub managed_id: Id,
}

impl fmt::Display for Namesake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, id, name, managed_id } = self;
        write!(
            f,
            "{kind} {name:?} ({id}) has the key {key} too; the journal knows {managed_id} as {key}, so this one stays as it is"
        )
    }
}
