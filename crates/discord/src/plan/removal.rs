//! Steps that remove managed objects, with what is lost with each.

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::field::FieldChange;
use super::fingerprint;
use super::leftover::Leftover;
use super::matching::type_name;
use super::step::{Action, PlanStep, StepTarget};
use crate::guild::{Channel, Guild, Message};
use crate::journal::GuildJournal;
use crate::name;
use crate::{Id, ObjectKind};

/// Returns the steps that remove objects, in the order in which they can be removed.
pub(super) fn steps(leftovers: &[Leftover], guild: &Guild, journal: &GuildJournal) -> Vec<PlanStep> {
    let route = |left: &Leftover| match (left.kind, left.channel) {
        (ObjectKind::Role, _) => Some(GuildRoute::RoleRemove(left.id)),
        (ObjectKind::Category | ObjectKind::Channel, _) => Some(GuildRoute::ChannelRemove(left.id)),
        (ObjectKind::Message, channel) => channel.map(|channel| GuildRoute::MessageRemove(channel, left.id)),
    };
    let losses = Losses { leftovers, guild, journal };
    let step = |left: &Leftover| PlanStep {
        target: StepTarget::Object(left.kind, left.key.clone()),
        action: Action::Remove,
        id: Some(left.id),
        adopted: false,
        fingerprint: fingerprint::order("discord removal", [left.id.to_string().as_str()].into_iter()),
        drift: None,
        changes: losses.of(left),
        call: route(left).map(|route| PlannedCall { route, body: CallBody::None }),
    };
    leftovers.iter().map(step).collect()
}

/// Finds what is lost with an object.
struct Losses<'a> {
    leftovers: &'a [Leftover],
    guild: &'a Guild,
    journal: &'a GuildJournal,
}

impl Losses<'_> {
    fn of(&self, left: &Leftover) -> Vec<FieldChange> {
        let mut lost = Vec::new();
        let mut lose = |field: &'static str, value: String| {
            lost.push(FieldChange { field: field.into(), from: Some(value), to: String::new() });
        };
        if !left.name.is_empty() {
            lose("name", format!("{:?}", left.name));
        }
        let channel = self.guild.channel(left.id);
        match (left.kind, channel) {
            (ObjectKind::Role, _) => {
                if let Some(role) = self.guild.role(left.id).filter(|role| !role.permissions.is_empty()) {
                    lose("permissions", role.permissions.to_string());
                }
            }
            (ObjectKind::Category, _) => {
                let stay = self.stays_of(left.id);
                if !stay.is_empty() {
                    lose("channels", format!("{} move out of it", stay.join(", ")));
                }
            }
            (ObjectKind::Channel, Some(channel)) => {
                lose("type", type_name(channel.kind));
                if let Some(category) = channel.parent.and_then(|id| self.guild.channel(id)) {
                    lose("category", quoted(&category.name));
                }
                if !channel.topic.is_empty() {
                    lose("topic", quoted(&channel.topic));
                }
                lose("messages", self.messages_of(left.id));
            }
            (ObjectKind::Message, _) => {
                if let Some(message) = self.message(left) {
                    lose("content", format!("{:?}", message.content));
                }
            }
            (ObjectKind::Channel, None) => {}
        }
        lost
    }

    /// Returns the names of the channels that stay when their category is removed.
    fn stays_of(&self, category: Id) -> Vec<String> {
        let goes = |channel: &Channel| self.leftovers.iter().any(|left| left.id == channel.id);
        let inside = self.guild.channels.iter().filter(|channel| channel.parent == Some(category));
        inside.filter(|channel| !goes(channel)).map(|channel| quoted(&channel.name)).collect()
    }

    /// Says what becomes of the messages of a channel.
    fn messages_of(&self, channel: Id) -> String {
        let managed = self.journal.entries_of(ObjectKind::Message);
        let managed = managed.filter(|(_, entry)| entry.channel == Some(channel));
        let keys: Vec<_> = managed.map(|(key, _)| key.as_str()).collect();
        let lost = "all are lost with the channel, whoever wrote them";
        if keys.is_empty() { lost.to_owned() } else { format!("{lost}; managed: {}", keys.join(", ")) }
    }

    fn message(&self, left: &Leftover) -> Option<&Message> {
        self.guild.messages.get(&left.channel?)?.iter().find(|message| message.id == left.id)
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", name::visible_text(text))
}
