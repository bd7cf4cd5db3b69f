//! One step of a plan: an object, what is done to it, and the call that does it.

use std::fmt;

use super::{FieldChange, PlannedCall};
use crate::{Id, ObjectKey, ObjectKind};

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// What it is about.
    pub target: StepTarget,
    /// What is done.
    pub action: Action,
    /// The object, where it is there already.
    pub id: Option<Id>,
    /// Whether it was found by its name and not by the journal, which has to take it in.
    pub adopted: bool,
    /// The fingerprint of the state that is wanted.
    pub fingerprint: String,
    /// What people did to it, as far as that can be told.
    pub drift: Option<Drift>,
    /// What is different, or all of it for a new object.
    pub changes: Vec<FieldChange>,
    /// The call; none for what stays as it is.
    pub call: Option<PlannedCall>,
}

/// What a step is about.
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
    /// The kind of object; none for an order.
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

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is made.
    Create,
    /// The fields that differ are changed.
    Update,
    /// Nothing: it is as it should be.
    Skip,
    /// It is put in its place among the others.
    Order,
    /// It is removed.
    Remove,
}

impl Action {
    /// In one word.
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

/// What people did by hand to something that was as the template says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// It is gone.
    Deleted,
    /// Its name is another one.
    Renamed,
    /// Something else of it is different.
    Edited,
}

impl Drift {
    /// In one word.
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
    /// The kind of operation that carries it.
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

    /// The idempotency key of its operation. A category and a channel may have one key, so a category's is marked.
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
