//! Managed objects that are no longer in the template. They are reported, and removed only on
//! request. A channel counts only if the journal knows it: its name alone does not prove that it is
//! ours.

use super::step::PlanStep;
use crate::guild::{CATEGORY, Guild};
use crate::journal::GuildJournal;
use crate::name;
use crate::template::{NameStyle, Template};
use crate::{Id, ObjectKey, ObjectKind};

/// A managed object that is not in the template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its key.
    pub key: ObjectKey,
    /// Its id.
    pub id: Id,
    /// The channel of a message.
    pub channel: Option<Id>,
    /// Its name; a message has none.
    pub name: String,
}

/// Finds all of them: messages, channels, categories, roles, which is the order in which they can
/// be removed.
pub(super) fn find(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    steps: &[PlanStep],
) -> Vec<Leftover> {
    let search = Search { template, guild, journal };
    // An old journal entry may be about an object that the template now has under a new key.
    let wanted = |left: &Leftover| {
        steps.iter().any(|step| step.id == Some(left.id) && step.target.kind() == Some(left.kind))
    };
    let mut channels = search.channels();
    channels.retain(|left| !wanted(left));
    let goes_along = |message: &Leftover| channels.iter().any(|channel| Some(channel.id) == message.channel);
    let mut all = search.messages();
    all.retain(|message| !goes_along(message));
    all.extend(channels.iter().cloned());
    all.extend(search.categories());
    all.extend(search.roles());
    all.retain(|left| !wanted(left));
    all
}

struct Search<'a> {
    template: &'a Template,
    guild: &'a Guild,
    journal: &'a GuildJournal,
}

impl Search<'_> {
    /// Returns the key that makes an object ours: the journal's, or the one in its name.
    fn key_of(&self, kind: ObjectKind, id: Id, name: &str) -> Option<ObjectKey> {
        let is_ours = |marked: &name::ManagedName<'_>| {
            self.template.names == NameStyle::Keyed && marked.prefix == self.template.prefix
        };
        let marked = || name::parse_managed_name(name).filter(is_ours);
        self.journal.key_of(kind, id).cloned().or_else(|| marked().map(|marked| marked.key))
    }

    fn roles(&self) -> Vec<Leftover> {
        let kept = |key: &ObjectKey| self.template.roles.iter().any(|role| role.key == *key);
        let left = |role: &crate::guild::Role| {
            let key = self
                .key_of(ObjectKind::Role, role.id, &role.name)
                .filter(|key| !kept(key) && !role.managed)?;
            Some(Leftover {
                kind: ObjectKind::Role,
                key,
                id: role.id,
                channel: None,
                name: name::visible_text(&role.name),
            })
        };
        self.guild.roles.iter().filter_map(left).collect()
    }

    fn categories(&self) -> Vec<Leftover> {
        let kept = |key: &ObjectKey| self.template.categories.iter().any(|category| category.key == *key);
        let left = |channel: &crate::guild::Channel| {
            let key =
                self.key_of(ObjectKind::Category, channel.id, &channel.name).filter(|key| !kept(key))?;
            let name = name::visible_text(&channel.name);
            Some(Leftover { kind: ObjectKind::Category, key, id: channel.id, channel: None, name })
        };
        self.guild.channels.iter().filter(|channel| channel.kind == CATEGORY).filter_map(left).collect()
    }

    fn channels(&self) -> Vec<Leftover> {
        let kept = |key: &ObjectKey| self.template.channels.iter().any(|channel| channel.key == *key);
        let left = |channel: &crate::guild::Channel| {
            let key = self.journal.key_of(ObjectKind::Channel, channel.id).filter(|key| !kept(key))?.clone();
            Some(Leftover {
                kind: ObjectKind::Channel,
                key,
                id: channel.id,
                channel: None,
                name: name::visible_text(&channel.name),
            })
        };
        self.guild.channels.iter().filter(|channel| channel.kind != CATEGORY).filter_map(left).collect()
    }

    /// Returns the messages that were read, and those that the journal knows in channels that were
    /// not read.
    fn messages(&self) -> Vec<Leftover> {
        let kept = |key: &ObjectKey| self.template.messages.iter().any(|message| message.key == *key);
        let left = |key: ObjectKey, id, channel| Leftover {
            kind: ObjectKind::Message,
            key,
            id,
            channel: Some(channel),
            name: String::new(),
        };
        let mut all = Vec::new();
        for (channel, own) in &self.guild.messages {
            for message in own {
                let marked = name::parse_message_marker(&message.content);
                let marked = marked.filter(|(prefix, _)| *prefix == self.template.prefix).map(|(_, key)| key);
                let key = self.journal.key_of(ObjectKind::Message, message.id).cloned().or(marked);
                all.extend(key.filter(|key| !kept(key)).map(|key| left(key, message.id, *channel)));
            }
        }
        for (key, entry) in self.journal.entries_of(ObjectKind::Message).filter(|(key, _)| !kept(key)) {
            let unread = |channel: &Id| {
                !self.guild.messages.contains_key(channel) && self.guild.channel(*channel).is_some()
            };
            all.extend(entry.channel.filter(unread).map(|channel| left(key.clone(), entry.id, channel)));
        }
        all
    }
}
