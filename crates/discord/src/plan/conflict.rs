//! What a plan cannot decide, told with the ids of the objects that people have to look at.

use std::fmt;

use super::Target;
use crate::{Id, Key, Kind};

/// Something that stops a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Several objects have one key.
    Several {
        /// Of this kind.
        kind: Kind,
        /// With this key.
        key: Key,
        /// These.
        ids: Vec<Id>,
    },
    /// The object is a channel of a type that cannot be turned into the wanted one.
    OtherType {
        /// The channel's key.
        key: Key,
        /// The channel.
        id: Id,
        /// What it is.
        is: String,
        /// What the template wants.
        wanted: &'static str,
    },
    /// There is no room.
    NoRoom {
        /// For what: `roles`, `channels`, or the channels of a category.
        what: String,
        /// How many there would be.
        would_be: usize,
        /// How many there may be.
        most: usize,
    },
}

impl Conflict {
    /// Whether a step has to wait for people.
    pub(super) fn stops(&self, target: &Target) -> bool {
        match (self, target) {
            (Self::Several { kind, key, .. }, Target::Object(other, step)) => kind == other && key == step,
            (Self::OtherType { key, .. }, Target::Object(Kind::Channel, step)) => key == step,
            _ => false,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Several { kind, key, ids } => {
                let ids: Vec<_> = ids.iter().map(Id::to_string).collect();
                let ids = ids.join(" and ");
                write!(
                    f,
                    "the key {key} is on several objects of kind {kind}: {ids}. Delete or rename all but one."
                )
            }
            Self::OtherType { key, id, is, wanted } => write!(
                f,
                "the channel {key} ({id}) is a {is} channel and cannot become a {wanted} channel. Delete it, or give the new one another key."
            ),
            Self::NoRoom { what, would_be, most } => {
                write!(f, "there would be {would_be} {what}; Discord allows {most}.")
            }
        }
    }
}
