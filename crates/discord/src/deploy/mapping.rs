//! Which object of a guild has which key, as the journal has it: for the planner to read, and to be put right when a plan has
//! seen what people did.

use tidegate_core::journal::{Lines, Mapped, Object};
use tidegate_store::Store;

use super::error::Result;
use super::record::words;
use crate::journal::{Entry, Journal};
use crate::plan::{Drift, Plan, Route, Step};
use crate::{Key, Kind};

/// What the journal knows of a guild.
pub(super) async fn known(store: &dyn Store, scope: &str) -> Result<Journal> {
    let mut journal = Journal::default();
    for Mapped { kind, key, object } in store.mapped(scope).await? {
        // What cannot be read is found by its name.
        let read = || {
            let object = object?;
            let channel = object.place.map(|place| place.parse()).transpose().ok()?;
            let entry =
                Entry { id: object.id.parse().ok()?, channel, fingerprint: object.fingerprint.to_string() };
            Some((kind_of(&kind)?, Key::new(&key)?, entry))
        };
        if let Some((kind, key, entry)) = read() {
            journal.record(kind, key, entry);
        }
    }
    Ok(journal)
}

/// Corrects what the journal says of messages that people have deleted or edited, so that the next deployment looks at them.
pub(super) async fn correct(store: &dyn Store, scope: &str, plan: &Plan) -> Result<()> {
    let corrected = |step: &Step| {
        let (kind, key) = words(&step.target);
        let route = step.call.as_ref().map(|call| &call.route);
        let object = match (step.target.kind()?, step.drift?, route) {
            (Kind::Message, Drift::Deleted, _) => None,
            (Kind::Message, _, Some(Route::MessageEdit(channel, id))) => Some(Object {
                id: id.to_string().into(),
                place: Some(channel.to_string().into()),
                fingerprint: "edited by hand".into(),
            }),
            _ => return None,
        };
        Some(Mapped { kind, key, object })
    };
    let mapped: Vec<_> = plan.steps.iter().filter_map(corrected).collect();
    let last = store.deployments(Some(scope), 1).await?.into_iter().next();
    if let Some(last) = last.filter(|_| !mapped.is_empty()) {
        // Who deploys meanwhile has seen it too, or will.
        store.write_journal(&last.id, last.fence, Lines { steps: Vec::new(), mapped }).await?;
    }
    Ok(())
}

fn kind_of(word: &str) -> Option<Kind> {
    [Kind::Role, Kind::Category, Kind::Channel, Kind::Message]
        .into_iter()
        .find(|kind| kind.to_string() == word)
}
