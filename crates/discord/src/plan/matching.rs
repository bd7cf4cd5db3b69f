//! Matches live objects to keys. The journal's id takes precedence; an object that the journal does
//! not know is adopted by the prefix and key in its name; with clean names by its invisible marker,
//! or else by its exact name. Two objects for one key, of which the journal knows neither, are a
//! conflict, never a guess.

use std::collections::{BTreeMap, BTreeSet};

use super::conflict::Conflict;
use super::namesake::Namesake;
use super::wire::ObjectRef;
use crate::guild::{self, CATEGORY, Guild};
use crate::journal::GuildJournal;
use crate::name;
use crate::template::{CategorySpec, ChannelSpec, ChannelType, NameStyle, RoleSpec, Template};
use crate::{Id, ObjectKey, ObjectKind};

/// The matched objects, by kind and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    by_key: BTreeMap<(ObjectKind, ObjectKey), Id>,
    namesakes: Vec<Namesake>,
}

impl Matches {
    /// Looks up every role, category and channel of a template.
    #[must_use]
    pub fn find(template: &Template, guild: &Guild, journal: &GuildJournal) -> (Self, Vec<Conflict>) {
        let mut search = Search { template, guild, journal, found: Self::default(), conflicts: Vec::new() };
        for role in &template.roles {
            search.record_match(ObjectKind::Role, &role.key, search.roles(role));
        }
        for category in &template.categories {
            search.record_match(ObjectKind::Category, &category.key, search.categories(category));
        }
        let managed = managed_categories(template, guild, journal);
        for channel in &template.channels {
            search.record_match(ObjectKind::Channel, &channel.key, search.channels(channel, &managed));
            search.refuse_other_type(channel);
        }
        (search.found, search.conflicts)
    }

    /// Returns the live object of a key.
    #[must_use]
    pub fn id(&self, kind: ObjectKind, key: &ObjectKey) -> Option<Id> {
        self.by_key.get(&(kind, key.clone())).copied()
    }

    /// Returns the objects that have the key of another one that the journal knows.
    #[must_use]
    pub fn namesakes(&self) -> &[Namesake] {
        &self.namesakes
    }

    /// Returns the live object of a key, or a reference to the one that will be created.
    #[must_use]
    pub fn handle(&self, kind: ObjectKind, key: &ObjectKey) -> ObjectRef {
        self.id(kind, key).map_or_else(|| ObjectRef::Planned(kind, key.clone()), ObjectRef::Known)
    }

    /// Returns whether an object is matched to a key.
    #[must_use]
    pub fn has(&self, kind: ObjectKind, id: Id) -> bool {
        self.by_key.iter().any(|((known, _), found)| *known == kind && *found == id)
    }
}

/// Returns the categories that have the prefix, or that the journal knows whatever they are called
/// now.
fn managed_categories(template: &Template, guild: &Guild, journal: &GuildJournal) -> BTreeSet<Id> {
    let marked =
        |name: &str| name::parse_managed_name(name).is_some_and(|marked| marked.prefix == template.prefix);
    let ours = |channel: &&guild::Channel| {
        channel.kind == CATEGORY
            && (marked(&channel.name) || journal.key_of(ObjectKind::Category, channel.id).is_some())
    };
    guild.channels.iter().filter(ours).map(|channel| channel.id).collect()
}

/// A live object, with the text that may have its marker; without a name it is not found by it.
struct NamedObject<'a> {
    id: Id,
    marked: &'a str,
    name: &'a str,
}

struct Search<'a> {
    template: &'a Template,
    guild: &'a Guild,
    journal: &'a GuildJournal,
    found: Matches,
    conflicts: Vec<Conflict>,
}

impl Search<'_> {
    fn record_match(&mut self, kind: ObjectKind, key: &ObjectKey, candidates: BTreeSet<Id>) {
        let only = candidates.first().copied().filter(|_| candidates.len() == 1);
        let known = self.journal_id(kind, key).filter(|id| candidates.contains(id));
        if let Some(managed_id) = known.or(only) {
            self.found.by_key.insert((kind, key.clone()), managed_id);
            let others = candidates.into_iter().filter(|id| *id != managed_id);
            let namesakes: Vec<_> = others
                .map(|id| Namesake { kind, key: key.clone(), id, name: self.name_of(kind, id), managed_id })
                .collect();
            self.found.namesakes.extend(namesakes);
        } else if !candidates.is_empty() {
            let names = candidates.iter().map(|id| self.name_of(kind, *id)).collect();
            let ids = candidates.into_iter().collect();
            self.conflicts.push(Conflict::DuplicateKey { kind, key: key.clone(), ids, names });
        }
    }

    fn name_of(&self, kind: ObjectKind, id: Id) -> String {
        let name = match kind {
            ObjectKind::Role => self.guild.role(id).map(|role| role.name.as_str()),
            _ => self.guild.channel(id).map(|channel| channel.name.as_str()),
        };
        name::visible_text(name.unwrap_or_default())
    }

    /// Returns whether an object may be adopted for this key by its name: not when the journal
    /// knows it by another key that is still wanted.
    fn can_adopt(&self, kind: ObjectKind, key: &ObjectKey, id: Id) -> bool {
        let wanted = |known: &ObjectKey| match kind {
            ObjectKind::Role => self.template.roles.iter().any(|role| role.key == *known),
            ObjectKind::Category => self.template.categories.iter().any(|category| category.key == *known),
            ObjectKind::Channel => self.template.channels.iter().any(|channel| channel.key == *known),
            ObjectKind::Message => self.template.messages.iter().any(|message| message.key == *known),
        };
        !self.journal.keys_of(kind, id).any(|known| known != key && wanted(known))
    }

    fn is_marked(&self, name: &str, key: &ObjectKey) -> bool {
        name::parse_managed_name(name)
            .is_some_and(|marked| marked.prefix == self.template.prefix && marked.key == *key)
    }

    fn journal_id(&self, kind: ObjectKind, key: &ObjectKey) -> Option<Id> {
        self.journal.get(kind, key).map(|entry| entry.id)
    }

    fn roles(&self, wanted: &RoleSpec) -> BTreeSet<Id> {
        let key = &wanted.key;
        if self.template.names == NameStyle::Clean {
            let name = self.template.role_name(wanted);
            let roles = self.guild.roles.iter().filter(|role| !role.managed && role.id != self.guild.id);
            let roles = roles.map(|role| NamedObject { id: role.id, marked: &role.name, name: &role.name });
            return self.clean(ObjectKind::Role, key, &name, roles);
        }
        let known = self.journal_id(ObjectKind::Role, key);
        let fits = |role: &&guild::Role| {
            let named = self.is_marked(&role.name, key) && self.can_adopt(ObjectKind::Role, key, role.id);
            !role.managed && (Some(role.id) == known || named)
        };
        self.guild.roles.iter().filter(fits).map(|role| role.id).collect()
    }

    fn categories(&self, wanted: &CategorySpec) -> BTreeSet<Id> {
        let key = &wanted.key;
        if self.template.names == NameStyle::Clean {
            let name = self.template.category_name(wanted);
            let all = self.guild.channels.iter().filter(|channel| channel.kind == CATEGORY);
            let all = all.map(|own| NamedObject { id: own.id, marked: &own.name, name: &own.name });
            return self.clean(ObjectKind::Category, key, &name, all);
        }
        let known = self.journal_id(ObjectKind::Category, key);
        let fits = |channel: &&guild::Channel| {
            let named =
                self.is_marked(&channel.name, key) && self.can_adopt(ObjectKind::Category, key, channel.id);
            channel.kind == CATEGORY && (Some(channel.id) == known || named)
        };
        self.guild.channels.iter().filter(fits).map(|channel| channel.id).collect()
    }

    /// Finds the candidates for a channel. A channel's name has no prefix, so its location counts
    /// too. In a managed category the key at the end of the name decides. Outside any category it
    /// decides if the template wants the channel there; otherwise the whole name must be the one
    /// that we would give. In a category that is not managed, no channel is ours.
    fn channels(&self, wanted: &ChannelSpec, managed: &BTreeSet<Id>) -> BTreeSet<Id> {
        if self.template.names == NameStyle::Clean {
            return self.clean_channels(wanted);
        }
        let known = self.journal_id(ObjectKind::Channel, &wanted.key);
        let (short, whole) = (wanted.key.short(), self.template.channel_name(wanted));
        let named = |channel: &guild::Channel| {
            let by_key = name::short_key_of(&channel.name) == Some(short.as_str());
            match channel.parent {
                Some(parent) => by_key && managed.contains(&parent),
                None => {
                    let same_place = wanted.category.is_none() || channel.name == whole;
                    by_key && same_place && is_convertible(channel.kind, wanted.channel_type)
                }
            }
        };
        let fits = |channel: &&guild::Channel| {
            let ours = named(channel) && self.can_adopt(ObjectKind::Channel, &wanted.key, channel.id);
            channel.kind != CATEGORY && (Some(channel.id) == known || ours)
        };
        self.guild.channels.iter().filter(fits).map(|channel| channel.id).collect()
    }

    /// Finds the candidates for a channel with a clean name. It has its marker in its topic, if
    /// channels of its type have one. The exact name counts only in the wanted category.
    fn clean_channels(&self, wanted: &ChannelSpec) -> BTreeSet<Id> {
        let category = wanted.category.as_ref().map(|key| self.found.id(ObjectKind::Category, key));
        let has_topic = wanted.channel_type.has_topic();
        let is_same = |own: &guild::Channel| {
            // A category that does not exist yet holds nothing.
            let is_there = category != Some(None) && own.parent == category.flatten();
            is_there && is_convertible(own.kind, wanted.channel_type)
        };
        let channels = self.guild.channels.iter().filter(|own| own.kind != CATEGORY);
        let channels = channels.map(|own| NamedObject {
            id: own.id,
            marked: if has_topic { &own.topic } else { &own.name },
            name: if is_same(own) { &own.name } else { "" },
        });
        let name = self.template.channel_name(wanted);
        self.clean(ObjectKind::Channel, &wanted.key, &name, channels)
    }

    /// Finds the candidates among objects with clean names: the journal's and those with the
    /// marker; if there are none, those of exactly this name that have no other marker.
    fn clean<'o>(
        &self,
        kind: ObjectKind,
        key: &ObjectKey,
        name: &str,
        objects: impl Iterator<Item = NamedObject<'o>>,
    ) -> BTreeSet<Id> {
        let (known, marker) = (self.journal_id(kind, key), self.template.marker(kind, key));
        let name = name::visible_text(name);
        let (mut sure, mut alike) = (BTreeSet::new(), BTreeSet::new());
        for object in objects {
            let is_adoptable = self.can_adopt(kind, key, object.id);
            let is_unmarked = !name::has_invisible_marker(object.marked);
            if Some(object.id) == known || (is_adoptable && object.marked.contains(&marker)) {
                sure.insert(object.id);
            } else if is_adoptable && is_unmarked && name::visible_text(object.name) == name {
                alike.insert(object.id);
            }
        }
        if sure.is_empty() { alike } else { sure }
    }

    fn refuse_other_type(&mut self, wanted: &ChannelSpec) {
        let Some(live) =
            self.found.id(ObjectKind::Channel, &wanted.key).and_then(|id| self.guild.channel(id))
        else {
            return;
        };
        if !is_convertible(live.kind, wanted.channel_type) {
            let (key, is) = (wanted.key.clone(), type_name(live.kind));
            self.conflicts.push(Conflict::TypeMismatch {
                key,
                id: live.id,
                is,
                wanted: wanted.channel_type.as_str(),
            });
        }
    }
}

/// Returns whether a channel of this type is of the wanted type or can be converted to it: text and
/// announcement can.
fn is_convertible(number: u8, shape: ChannelType) -> bool {
    let written =
        |number| number == ChannelType::Text.number() || number == ChannelType::Announcement.number();
    number == shape.number() || (written(number) && written(shape.number()))
}

/// Returns the name of Discord's type number.
pub(super) fn type_name(number: u8) -> String {
    let known =
        ChannelType::ALL.iter().find(|(.., known)| *known == number).map(|(_, word, _)| (*word).to_owned());
    known.unwrap_or_else(|| format!("type {number}"))
}
