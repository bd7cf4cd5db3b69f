//! Steps for messages. A message is found by the marker in its last line, among the bot's own; whoever carries the
//! step looks for it once more before posting, because the channel may not have been read.

use std::collections::BTreeSet;

use serde_json::json;

use super::call::{Body, Call, Route};
use super::conflict::Conflict;
use super::field::Change;
use super::fingerprint;
use super::matching::Matches;
use super::step::{Action, Drift, Step, Target};
use super::wire::{Handle, Wire};
use crate::guild::{self, Guild};
use crate::journal::{Entry, Journal};
use crate::name;
use crate::template::{Message, Template};
use crate::{Id, Kind};

/// The channels whose messages a plan would have to read. By default those of messages that the journal does not
/// settle; with `all` every one that holds a message, so that one that was deleted by hand is noticed too.
#[must_use]
pub fn to_read(template: &Template, guild: &Guild, journal: &Journal, all: bool) -> BTreeSet<Id> {
    let (matches, _) = Matches::find(template, guild, journal);
    let unsure = |message: &&Message| {
        let entry = journal.get(Kind::Message, &message.key);
        let channel = matches.id(Kind::Channel, &message.channel);
        let right = fingerprint::message(template, message);
        all || entry.is_none_or(|entry| entry.fingerprint != right || entry.channel != channel)
    };
    let unsure = template.messages.iter().filter(unsure);
    unsure.filter_map(|message| matches.id(Kind::Channel, &message.channel)).collect()
}

/// One for each message.
pub(super) fn steps(
    template: &Template,
    guild: &Guild,
    journal: &Journal,
    matches: &Matches,
    conflicts: &mut Vec<Conflict>,
) -> Vec<Step> {
    let mut steps = Vec::with_capacity(template.messages.len());
    for message in &template.messages {
        let channel = matches.handle(Kind::Channel, &message.channel);
        let place = match &channel {
            Handle::Known(id) => Some(*id),
            Handle::Made(..) => None,
        };
        // A line about another channel is about another message: this one was moved in the template.
        let entry = journal.get(Kind::Message, &message.key);
        let entry = entry.filter(|entry| place.is_some() && entry.channel == place);
        let read = place.and_then(|id| guild.messages.get(&id));
        let own = read.map_or_else(Vec::new, |own| candidates(template, message, own, entry));
        if own.len() > 1 {
            let ids = own.iter().map(|own| own.id).collect();
            conflicts.push(Conflict::Several { kind: Kind::Message, key: message.key.clone(), ids });
            continue;
        }
        let state = match (read, own.first(), entry, place) {
            (Some(_), Some(live), _, Some(channel)) => State::There(channel, live),
            (None, _, Some(entry), Some(channel)) => State::Believed(channel, entry),
            (Some(_), None, Some(_), _) => State::Gone,
            _ => State::New,
        };
        steps.push(step(template, message, channel, entry, &state));
    }
    steps
}

/// Own messages that carry the marker, or that the journal knows.
fn candidates<'a>(
    template: &Template,
    message: &Message,
    own: &'a [guild::Message],
    entry: Option<&Entry>,
) -> Vec<&'a guild::Message> {
    let marked =
        |content: &str| name::read_marker(content) == Some((template.prefix.as_str(), message.key.clone()));
    let known = entry.map(|entry| entry.id);
    own.iter().filter(|own| Some(own.id) == known || marked(&own.content)).collect()
}

enum State<'a> {
    /// It was read.
    There(Id, &'a guild::Message),
    /// The channel was not read; the journal knows the message.
    Believed(Id, &'a Entry),
    /// The channel was read, and what the journal knows is not in it.
    Gone,
    /// Nothing is known of it.
    New,
}

fn step(
    template: &Template,
    message: &Message,
    channel: Handle,
    entry: Option<&Entry>,
    state: &State<'_>,
) -> Step {
    let fingerprint = fingerprint::message(template, message);
    let content = format!("{}\n{}", message.content, name::marker(&template.prefix, &message.key));
    let was_right = entry.is_some_and(|entry| entry.fingerprint == fingerprint);
    let (action, id, from, route) = match state {
        State::There(_, live) if live.content.trim() == content => (Action::Skip, Some(live.id), None, None),
        State::There(channel, live) => {
            let route = Route::MessageEdit(*channel, live.id);
            (Action::Update, Some(live.id), Some(live.content.as_str()), Some(route))
        }
        State::Believed(_, entry) if was_right => (Action::Skip, Some(entry.id), None, None),
        State::Believed(channel, entry) => {
            (Action::Update, Some(entry.id), None, Some(Route::MessageEdit(*channel, entry.id)))
        }
        State::Gone | State::New => (Action::Create, None, None, Some(Route::MessageCreate(channel))),
    };
    let drift = match (state, action) {
        (State::Gone, _) => Some(Drift::Deleted),
        (State::There(..), Action::Update) if was_right => Some(Drift::Edited),
        _ => None,
    };
    let quoted = |text: &str| format!("{text:?}");
    let changes =
        route.iter().map(|_| Change { field: "content", from: from.map(quoted), to: quoted(&content) });
    // Nobody is called by a message that is put in place.
    let fields = vec![
        ("content", Wire::Plain(json!(content))),
        ("allowed_mentions", Wire::Plain(json!({"parse": []}))),
    ];
    Step {
        target: Target::Object(Kind::Message, message.key.clone()),
        action,
        id,
        adopted: id.is_some() && entry.map(|entry| entry.id) != id,
        fingerprint,
        drift,
        changes: changes.collect(),
        call: route.map(|route| Call { route, body: Body::Fields(Wire::Object(fields)) }),
    }
}
