//! Fields of an object, actual and desired. A create sends all of them, an update those that
//! differ.

use std::borrow::Cow;

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::step::{Action, Drift, PlanStep, StepTarget};
use super::wire::UnresolvedJson;
use crate::journal::GuildJournalEntry;
use crate::{Id, ObjectKey, ObjectKind};

/// One difference, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field, by its name in a template where it has one.
    pub field: Cow<'static, str>,
    /// The actual value; none for a new object.
    pub from: Option<String>,
    /// The desired value; empty for an object that is removed.
    pub to: String,
}

/// A field of one object.
pub(super) struct Field {
    /// Its name in the request.
    pub wire: &'static str,
    /// Its name in the template.
    pub label: &'static str,
    pub value: UnresolvedJson,
    /// The desired value, for people.
    pub to: String,
    /// The actual value, for people; none for a new object.
    pub from: Option<String>,
    /// Whether it is omitted from the display of a new object, because it is Discord's default.
    pub usual: bool,
}

impl Field {
    fn differs(&self) -> bool {
        self.from.as_ref() != Some(&self.to)
    }

    fn change(&self) -> FieldChange {
        FieldChange { field: self.label.into(), from: self.from.clone(), to: self.to.clone() }
    }
}

/// An object with its desired fields.
pub(super) struct DesiredObject<'a> {
    pub kind: ObjectKind,
    pub key: &'a ObjectKey,
    /// The live object, if it exists.
    pub id: Option<Id>,
    /// The journal's entry for the key.
    pub entry: Option<&'a GuildJournalEntry>,
    pub fingerprint: String,
    /// Fields sent with a create, and never compared.
    pub fixed: Vec<(&'static str, UnresolvedJson)>,
    pub fields: Vec<Field>,
}

impl DesiredObject<'_> {
    /// Returns the step that brings the object to its desired state.
    pub(super) fn step(self, create: GuildRoute, edit: impl FnOnce(Id) -> GuildRoute) -> PlanStep {
        let target = StepTarget::Object(self.kind, self.key.clone());
        let adopted = self.id.is_some() && self.entry.map(|entry| entry.id) != self.id;
        let was_right = self.entry.is_some_and(|entry| entry.fingerprint == self.fingerprint);
        let differs: Vec<_> = self.fields.iter().filter(|field| field.differs()).collect();
        let pairs = |fields: &[&Field]| {
            fields.iter().map(|field| (field.wire, field.value.clone())).collect::<Vec<_>>()
        };
        let (action, changes, call, drift) = match self.id {
            None => {
                let shown = self.fields.iter().filter(|field| !field.usual).map(Field::change).collect();
                let body = self.fixed.iter().cloned().chain(pairs(&self.fields.iter().collect::<Vec<_>>()));
                let call = PlannedCall {
                    route: create,
                    body: CallBody::Fields(UnresolvedJson::Object(body.collect())),
                };
                (Action::Create, shown, Some(call), self.entry.map(|_| Drift::Deleted))
            }
            Some(_) if differs.is_empty() => (Action::Skip, Vec::new(), None, None),
            Some(id) => {
                let changes: Vec<_> = differs.iter().map(|field| field.change()).collect();
                let call = PlannedCall {
                    route: edit(id),
                    body: CallBody::Fields(UnresolvedJson::Object(pairs(&differs))),
                };
                let renamed = changes.iter().any(|change| change.field == "name");
                let drift = if renamed { Drift::Renamed } else { Drift::Edited };
                (Action::Update, changes, Some(call), (was_right && !adopted).then_some(drift))
            }
        };
        PlanStep { target, action, id: self.id, adopted, fingerprint: self.fingerprint, drift, changes, call }
    }
}
