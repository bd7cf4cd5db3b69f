//! One step of a plan: an object, what is done to it, and the call that does it.

use std::fmt;

use super::{FieldChange, PlannedCall};
use crate::{Id, ObjectKey, ObjectKind};

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// The object or order it is about.
    pub target: StepTarget,
    /// The action.
    pub action: Action,
    /// The object, if it exists already.
    pub id: Option<Id>,
    /// Whether it was found by its name instead of the journal, which has to record it.
    pub adopted: bool,
    /// The fingerprint of the desired state.
    pub fingerprint: String,
    /// The manual change to it, as far as known.
    pub drift: Option<Drift>,
    /// The fields that differ, or all fields of a new object.
    pub changes: Vec<FieldChange>,
    /// The call; none for an object that stays as it is.
    pub call: Option<PlannedCall>,
}

/// The target of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepTarget {
    /// One object.
    Object(ObjectKind, ObjectKey),
    /// The order of the roles.
    RoleOrder,
    /// The order of categories and channels.
    ChannelOrder,
}

impl StepTarget {
    /// Returns the kind and the key in words: those of an object, or `order` and what is ordered.
    #[must_use]
    pub fn words(&self) -> (String, String) {
        match self {
            Self::Object(kind, key) => (kind.to_string(), key.to_string()),
            Self::RoleOrder => ("order".to_owned(), "roles".to_owned()),
            Self::ChannelOrder => ("order".to_owned(), "channels".to_owned()),
        }
    }

    /// Returns the target after what is done to it. An order says that itself.
    #[must_use]
    pub fn with_action(&self, action: Action) -> String {
        match self {
            Self::Object(..) => format!("{} {self}", action.as_str()),
            Self::RoleOrder | Self::ChannelOrder => self.to_string(),
        }
    }

    /// Returns the kind of object; none for an order.
    #[must_use]
    pub fn kind(&self) -> Option<ObjectKind> {
        match self {
            Self::Object(kind, _) => Some(*kind),
            Self::RoleOrder | Self::ChannelOrder => None,
        }
    }
}

impl fmt::Display for StepTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(kind, key) => write!(f, "{kind} {key}"),
            Self::RoleOrder => f.write_str("order of roles"),
            Self::ChannelOrder => f.write_str("order of channels"),
        }
    }
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Creates the object.
    Create,
    /// Changes the fields that differ.
    Update,
    /// Does nothing: the object is as it should be.
    Skip,
    /// Moves the object to its position among the others.
    Order,
    /// Removes the object.
    Remove,
}

impl Action {
    /// Returns the action in one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Skip => "skip",
            Self::Order => "order",
            Self::Remove => "remove",
        }
    }
}

/// A manual change to an object that was as the template says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// It was deleted.
    Deleted,
    /// It was renamed.
    Renamed,
    /// Something else about it was edited.
    Edited,
}

impl Drift {
    /// Returns the change in one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Edited => "edited",
        }
    }
}

impl PlanStep {
    /// Returns the kind of the operation that executes it.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        let only_overwrites =
            self.action == Action::Update && self.changes.iter().all(|c| c.field == "overwrites");
        match (&self.target, self.action) {
            (StepTarget::RoleOrder, _) => "RolesMove",
            (StepTarget::ChannelOrder, _) => "ChannelsMove",
            (StepTarget::Object(ObjectKind::Role, _), Action::Remove) => "RoleRemove",
            (StepTarget::Object(ObjectKind::Message, _), Action::Remove) => "MessageRemove",
            (StepTarget::Object(..), Action::Remove) => "ChannelRemove",
            (StepTarget::Object(ObjectKind::Role, _), _) => "RoleEnsure",
            (StepTarget::Object(ObjectKind::Message, _), _) => "MessageEnsure",
            (StepTarget::Object(..), _) if only_overwrites => "OverwritesReplace",
            (StepTarget::Object(..), _) => "ChannelEnsure",
        }
    }

    /// Returns the idempotency key of its operation. A category and a channel may have the same
    /// key, so a category's is marked.
    #[must_use]
    pub fn operation_key(&self, guild: Id, deployment: &str) -> String {
        let object = match &self.target {
            StepTarget::Object(ObjectKind::Category, key) => format!("category.{key}"),
            StepTarget::Object(_, key) => key.to_string(),
            StepTarget::RoleOrder | StepTarget::ChannelOrder => "all".to_owned(),
        };
        format!("guild:{guild}/deploy:{deployment}/{}/{object}/{}", self.operation(), self.fingerprint)
    }
}
