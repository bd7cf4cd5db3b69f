//! Conflicts that a plan cannot resolve, with the ids of the objects that people have to look at.

use std::fmt;

use super::StepTarget;
use crate::permission::Permissions;
use crate::{Id, ObjectKey, ObjectKind};

/// A conflict that stops a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Several objects have the same key.
    DuplicateKey {
        /// Their kind.
        kind: ObjectKind,
        /// Their key.
        key: ObjectKey,
        /// Their ids.
        ids: Vec<Id>,
        /// Their names, in the same order; messages have none.
        names: Vec<String>,
    },
    /// The object is a channel whose type cannot be converted to the wanted one.
    TypeMismatch {
        /// The channel's key.
        key: ObjectKey,
        /// The channel.
        id: Id,
        /// Its type.
        is: String,
        /// The type in the template.
        wanted: &'static str,
    },
    /// There is not enough room.
    NoRoom {
        /// What there is no room for: `roles`, `channels`, or the channels of a category.
        what: String,
        /// How many there would be.
        would_be: usize,
        /// How many are allowed.
        most: usize,
    },
    /// The bot lacks a permission.
    MissingPermission {
        /// The permission.
        permission: Permissions,
        /// How many steps need it.
        steps: usize,
        /// The first of them.
        first: StepTarget,
    },
    /// Overwrites take a permission from the bot that its roles have.
    LockedOut {
        /// The permission.
        permission: Permissions,
        /// Whether the object with the overwrites is a category or a channel.
        kind: ObjectKind,
        /// Its key.
        key: ObjectKey,
        /// The first step that needs it.
        first: StepTarget,
        /// Whether the overwrites are those of the template, or those in the guild now.
        by_template: bool,
    },
    /// A role is not below the bot's own, so the bot cannot change it.
    RoleAboveBot {
        /// The role's key.
        key: ObjectKey,
        /// The role.
        id: Id,
    },
    /// Channels need the community features, which the guild does not have.
    NoCommunity {
        /// Their keys.
        channels: Vec<ObjectKey>,
    },
}

impl Conflict {
    /// Returns whether a step has to wait until the conflict is resolved.
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
            Self::DuplicateKey { kind, key, ids, names } => {
                let name = |nth| names.get(nth).map_or_else(String::new, |name| format!(" {name:?}"));
                let ids: Vec<_> =
                    ids.iter().enumerate().map(|(nth, id)| format!("{id}{}", name(nth))).collect();
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
            Self::MissingPermission { permission, steps, first } => {
                let needed = match steps {
                    1 => format!("which the {first} needs"),
                    steps => format!("which {steps} steps need, such as the {first}"),
                };
                write!(f, "the bot lacks {permission}, {needed}. Grant it to the bot's role.")
            }
            Self::LockedOut { permission, kind, key, first, by_template: true } => write!(
                f,
                "the template's overwrites take {permission} from the bot in the {kind} {key}, which the {first} needs. Its roles have it, so granting it changes nothing: make the bot an administrator, or do not deny it there."
            ),
            Self::LockedOut { permission, kind, key, first, by_template: false } => write!(
                f,
                "the overwrites of the {kind} {key} take {permission} from the bot, which the {first} needs. Its roles have it, so granting it changes nothing: make the bot an administrator, or remove that overwrite in Discord."
            ),
            Self::RoleAboveBot { key, id } => write!(
                f,
                "the role {key} ({id}) is not below the bot's own role, so the bot cannot change it. Move the bot's role up."
            ),
            Self::NoCommunity { channels } => {
                let keys: Vec<_> = channels.iter().map(ObjectKey::as_str).collect();
                write!(
                    f,
                    "announcement, stage and forum channels need the community features, which the guild does not have: {}. Enable Community in the guild's settings.",
                    keys.join(", ")
                )
            }
        }
    }
}
