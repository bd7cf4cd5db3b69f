//! What a plan cannot decide, told with the ids of the objects that people have to look at.

use std::fmt;

use super::StepTarget;
use crate::{Id, ObjectKey, ObjectKind};

/// Something that stops a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Several objects have one key.
    DuplicateKey {
        /// Of this kind.
        kind: ObjectKind,
        /// With this key.
        key: ObjectKey,
        /// These.
        ids: Vec<Id>,
    },
    /// The object is a channel of a type that cannot be turned into the wanted one.
    TypeMismatch {
        /// The channel's key.
        key: ObjectKey,
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
    pub(super) fn blocks(&self, target: &StepTarget) -> bool {
        match (self, target) {
            (Self::DuplicateKey { kind, key, .. }, StepTarget::Object(other, step)) => {
                kind == other && key == step
            }
            (Self::TypeMismatch { key, .. }, StepTarget::Object(ObjectKind::Channel, step)) => key == step,
            _ => false,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateKey { kind, key, ids } => {
                let ids: Vec<_> = ids.iter().map(Id::to_string).collect();
                let ids = ids.join(" and ");
                write!(
                    f,
                    "the key {key} is on several objects of kind {kind}: {ids}. Delete or rename all but one."
                )
            }
            Self::TypeMismatch { key, id, is, wanted } => write!(
                f,
                "the channel {key} ({id}) is a {is} channel and cannot become a {wanted} channel. Delete it, or give the new one another key."
            ),
            Self::NoRoom { what, would_be, most } => {
                write!(f, "there would be {would_be} {what}; Discord allows {most}.")
            }
        }
    }
}
