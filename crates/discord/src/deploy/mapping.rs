//! The journal's mapping from keys to objects of a guild: read by the planner, and corrected when a
//! plan has seen manual changes.

use tidegate_core::journal::{ForeignObject, JournalLines, ObjectMapping};
use tidegate_store::Store;

use super::error::Result;
use super::journal_writer::journal_key;
use crate::journal::{GuildJournal, GuildJournalEntry};
use crate::plan::{Drift, GuildRoute, Plan, PlanStep};
use crate::{ObjectKey, ObjectKind};

/// Loads what the journal knows of a guild.
pub(super) async fn load(store: &dyn Store, scope: &str) -> Result<GuildJournal> {
    let mut journal = GuildJournal::default();
    for ObjectMapping { kind, key, object } in store.mapped_objects(scope).await? {
        // An entry that cannot be read is found by its name instead.
        let read = || {
            let object = object?;
            let channel = object.place.map(|place| place.parse()).transpose().ok()?;
            let entry = GuildJournalEntry {
                id: object.id.parse().ok()?,
                channel,
                fingerprint: object.fingerprint.to_string(),
            };
            Some((kind_of(&kind)?, ObjectKey::new(&key)?, entry))
        };
        if let Some((kind, key, entry)) = read() {
            journal.record(kind, key, entry);
        }
    }
    Ok(journal)
}

/// Corrects the journal's entries for messages that people have deleted or edited, so that the next
/// deployment looks at them.
pub(super) async fn correct_messages(store: &dyn Store, scope: &str, plan: &Plan) -> Result<()> {
    let corrected = |step: &PlanStep| {
        let (kind, key) = journal_key(&step.target);
        let route = step.call.as_ref().map(|call| &call.route);
        let object = match (step.target.kind()?, step.drift?, route) {
            (ObjectKind::Message, Drift::Deleted, _) => None,
            (ObjectKind::Message, _, Some(GuildRoute::MessageEdit(channel, id))) => Some(ForeignObject {
                id: id.to_string().into(),
                place: Some(channel.to_string().into()),
                fingerprint: "edited by hand".into(),
            }),
            _ => return None,
        };
        Some(ObjectMapping { kind, key, object })
    };
    let mapped: Vec<_> = plan.steps.iter().filter_map(corrected).collect();
    let last = store.deployments(Some(scope), 1).await?.into_iter().next();
    if let Some(last) = last.filter(|_| !mapped.is_empty()) {
        // A deployment that runs meanwhile has seen it too, or will.
        store.write_journal(&last.id, last.fence, JournalLines { steps: Vec::new(), mapped }).await?;
    }
    Ok(())
}

fn kind_of(word: &str) -> Option<ObjectKind> {
    [ObjectKind::Role, ObjectKind::Category, ObjectKind::Channel, ObjectKind::Message]
        .into_iter()
        .find(|kind| kind.to_string() == word)
}
