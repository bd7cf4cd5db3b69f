//! The names and topics that objects of a template get in Discord, by the style of the template.

use super::{CategorySpec, ChannelSpec, RoleSpec, Template};
use crate::name::{self, slug};
use crate::{ObjectKey, ObjectKind};

/// How the names of managed objects look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// `keyed`: names carry the keys, so that objects are found without a journal.
    #[default]
    Keyed,
    /// `clean`: names carry nothing that people see. The journal knows the objects; without it, an
    /// invisible marker does, or else the exact name.
    Clean,
}

impl NameStyle {
    /// All styles, with their words in a template.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Keyed, "keyed"), (Self::Clean, "clean")];

    /// Returns the warning to people who might rename something, as in every plan.
    #[must_use]
    pub const fn warning(self) -> &'static str {
        match self {
            Self::Keyed => {
                "Do not rename managed objects: their names carry the keys by which they are found again."
            }
            Self::Clean => "Do not rename managed objects, and keep the journal: their names carry no keys.",
        }
    }

    /// Returns the part of a text that is compared and shown.
    #[must_use]
    pub fn shown(self, text: &str) -> String {
        match self {
            Self::Keyed => text.to_owned(),
            Self::Clean => name::visible_text(text),
        }
    }
}

impl Template {
    /// Returns the name of a role in Discord.
    #[must_use]
    pub fn role_name(&self, role: &RoleSpec) -> String {
        self.display_name(ObjectKind::Role, &role.name, &role.key)
    }

    /// Returns the name of a category in Discord.
    #[must_use]
    pub fn category_name(&self, category: &CategorySpec) -> String {
        self.display_name(ObjectKind::Category, &category.name, &category.key)
    }

    /// Returns the name of a channel in Discord.
    #[must_use]
    pub fn channel_name(&self, channel: &ChannelSpec) -> String {
        match self.names {
            NameStyle::Keyed => name::managed_channel_name(&channel.name, &channel.key),
            NameStyle::Clean if channel.channel_type.has_topic() => {
                let slug = slug::slugify(&channel.name);
                if slug.is_empty() { "channel".to_owned() } else { slug }
            }
            NameStyle::Clean => self.display_name(ObjectKind::Channel, &channel.name, &channel.key),
        }
    }

    /// Returns the topic of a channel in Discord.
    #[must_use]
    pub fn channel_topic(&self, channel: &ChannelSpec) -> String {
        match self.names {
            NameStyle::Clean if channel.channel_type.has_topic() => {
                format!("{}{}", channel.topic, self.marker(ObjectKind::Channel, &channel.key))
            }
            _ => channel.topic.clone(),
        }
    }

    /// Returns the invisible marker of an object.
    pub(crate) fn marker(&self, kind: ObjectKind, key: &ObjectKey) -> String {
        name::invisible_marker(&self.prefix, kind, key)
    }

    fn display_name(&self, kind: ObjectKind, shown: &str, key: &ObjectKey) -> String {
        match self.names {
            NameStyle::Keyed => name::managed_name(&self.prefix, shown, key),
            NameStyle::Clean => {
                format!("{}{}", name::normalize_display_name(shown), self.marker(kind, key))
            }
        }
    }
}
