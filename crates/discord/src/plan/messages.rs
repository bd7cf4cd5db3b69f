//! Steps for messages. A message is found by the marker in its last line, among the bot's own; the
//! executor of the step looks for it again before posting, because the channel may not have been
//! read.

use std::collections::BTreeSet;

use serde_json::json;

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::conflict::Conflict;
use super::field::FieldChange;
use super::fingerprint;
use super::matching::Matches;
use super::step::{Action, Drift, PlanStep, StepTarget};
use super::wire::{ObjectRef, UnresolvedJson};
use crate::guild::{self, Guild};
use crate::journal::{GuildJournal, GuildJournalEntry};
use crate::name;
use crate::template::{MessageSpec, Template};
use crate::{Id, ObjectKey, ObjectKind};

/// Returns the channels whose messages a plan has to read: those of messages that the journal does
/// not settle, and those of the messages that `reads` selects, so that one deleted by hand is
/// noticed too.
#[must_use]
pub fn channels_to_read(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    reads: impl Fn(&ObjectKey) -> bool,
) -> BTreeSet<Id> {
    let (matches, _) = Matches::find(template, guild, journal);
    let unsure = |message: &&MessageSpec| {
        let entry = journal.get(ObjectKind::Message, &message.key);
        let channel = matches.id(ObjectKind::Channel, &message.channel);
        let right = fingerprint::message(template, message);
        reads(&message.key)
            || entry.is_none_or(|entry| entry.fingerprint != right || entry.channel != channel)
    };
    let unsure = template.messages.iter().filter(unsure);
    unsure.filter_map(|message| matches.id(ObjectKind::Channel, &message.channel)).collect()
}

/// Returns a step for each message.
pub(super) fn steps(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    matches: &Matches,
    conflicts: &mut Vec<Conflict>,
) -> Vec<PlanStep> {
    let mut steps = Vec::with_capacity(template.messages.len());
    for message in &template.messages {
        let channel = matches.handle(ObjectKind::Channel, &message.channel);
        let place = match &channel {
            ObjectRef::Known(id) => Some(*id),
            ObjectRef::Planned(..) => None,
        };
        // An entry for another channel is about another message: this one was moved in the
        // template.
        let entry = journal.get(ObjectKind::Message, &message.key);
        let entry = entry.filter(|entry| place.is_some() && entry.channel == place);
        let read = place.and_then(|id| guild.messages.get(&id));
        let own = read.map_or_else(Vec::new, |own| candidates(template, message, own, entry));
        if own.len() > 1 {
            let ids = own.iter().map(|own| own.id).collect();
            let (kind, key) = (ObjectKind::Message, message.key.clone());
            conflicts.push(Conflict::DuplicateKey { kind, key, ids, names: Vec::new() });
            continue;
        }
        let state = match (read, own.first(), entry, place) {
            (Some(_), Some(live), _, Some(channel)) => MessageState::Present(channel, live),
            (None, _, Some(entry), Some(channel)) => MessageState::Journaled(channel, entry),
            (Some(_), None, Some(_), _) => MessageState::Gone,
            _ => MessageState::New,
        };
        steps.push(step(template, message, channel, entry, &state));
    }
    steps
}

/// Returns the bot's messages that have the marker, or that the journal knows.
fn candidates<'a>(
    template: &Template,
    message: &MessageSpec,
    own: &'a [guild::Message],
    entry: Option<&GuildJournalEntry>,
) -> Vec<&'a guild::Message> {
    let marked = |content: &str| {
        name::parse_message_marker(content) == Some((template.prefix.as_str(), message.key.clone()))
    };
    let known = entry.map(|entry| entry.id);
    own.iter().filter(|own| Some(own.id) == known || marked(&own.content)).collect()
}

enum MessageState<'a> {
    /// It was read.
    Present(Id, &'a guild::Message),
    /// The channel was not read; the journal knows the message.
    Journaled(Id, &'a GuildJournalEntry),
    /// The channel was read, and the journal's message is not in it.
    Gone,
    /// Nothing is known of it.
    New,
}

fn step(
    template: &Template,
    message: &MessageSpec,
    channel: ObjectRef,
    entry: Option<&GuildJournalEntry>,
    state: &MessageState<'_>,
) -> PlanStep {
    let fingerprint = fingerprint::message(template, message);
    let content = format!("{}\n{}", message.content, name::message_marker(&template.prefix, &message.key));
    let was_right = entry.is_some_and(|entry| entry.fingerprint == fingerprint);
    let (action, id, from, route) = match state {
        MessageState::Present(_, live) if live.content.trim() == content => {
            (Action::Skip, Some(live.id), None, None)
        }
        MessageState::Present(channel, live) => {
            let route = GuildRoute::MessageEdit(*channel, live.id);
            (Action::Update, Some(live.id), Some(live.content.as_str()), Some(route))
        }
        MessageState::Journaled(_, entry) if was_right => (Action::Skip, Some(entry.id), None, None),
        MessageState::Journaled(channel, entry) => {
            (Action::Update, Some(entry.id), None, Some(GuildRoute::MessageEdit(*channel, entry.id)))
        }
        MessageState::Gone | MessageState::New => {
            (Action::Create, None, None, Some(GuildRoute::MessageCreate(channel)))
        }
    };
    let drift = match (state, action) {
        (MessageState::Gone, _) => Some(Drift::Deleted),
        (MessageState::Present(..), Action::Update) if was_right => Some(Drift::Edited),
        _ => None,
    };
    let quoted = |text: &str| format!("{text:?}");
    let changes = route.iter().map(|_| FieldChange {
        field: "content".into(),
        from: from.map(quoted),
        to: quoted(&content),
    });
    // A message that is put in place mentions no one.
    let fields = vec![
        ("content", UnresolvedJson::Plain(json!(content))),
        ("allowed_mentions", UnresolvedJson::Plain(json!({"parse": []}))),
    ];
    PlanStep {
        target: StepTarget::Object(ObjectKind::Message, message.key.clone()),
        action,
        id,
        adopted: id.is_some() && entry.map(|entry| entry.id) != id,
        fingerprint,
        drift,
        changes: changes.collect(),
        call: route
            .map(|route| PlannedCall { route, body: CallBody::Fields(UnresolvedJson::Object(fields)) }),
    }
}
