//! Fields of an object as they are and as they should be. All of them make a create, those that differ an update.

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::step::{Action, Drift, PlanStep, StepTarget};
use super::wire::UnresolvedJson;
use crate::journal::GuildJournalEntry;
use crate::{Id, ObjectKey, ObjectKind};

/// One difference, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field, by its name in a template where it has one.
    pub field: &'static str,
    /// As it is; none for a new object.
    pub from: Option<String>,
    /// As it should be.
    pub to: String,
}

/// A field of one object.
pub(super) struct Field {
    /// In the request.
    pub wire: &'static str,
    /// In the template.
    pub label: &'static str,
    pub value: UnresolvedJson,
    /// As it should be, for people.
    pub to: String,
    /// As it is, for people; none for a new object.
    pub from: Option<String>,
    /// Not worth a word when a new object has it: it is what Discord gives anyway.
    pub usual: bool,
}

impl Field {
    fn differs(&self) -> bool {
        self.from.as_ref() != Some(&self.to)
    }

    fn change(&self) -> FieldChange {
        FieldChange { field: self.label, from: self.from.clone(), to: self.to.clone() }
    }
}

/// An object whose fields are known.
pub(super) struct DesiredObject<'a> {
    pub kind: ObjectKind,
    pub key: &'a ObjectKey,
    /// Where it is there.
    pub id: Option<Id>,
    /// What the journal says of the key.
    pub entry: Option<&'a GuildJournalEntry>,
    pub fingerprint: String,
    /// Sent with a create, and never compared.
    pub fixed: Vec<(&'static str, UnresolvedJson)>,
    pub fields: Vec<Field>,
}

impl DesiredObject<'_> {
    /// The step that makes the object what it should be.
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
