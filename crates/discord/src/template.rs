//! A guild as somebody wants it: roles, categories, channels, overwrites and messages, each with a key that stays.
//! A template is read from YAML and checked as a whole; what is wrong is told all at once, with line and column.

mod check;
mod node;
mod parse;
mod path;
mod problem;
mod reader;

use crate::ObjectKey;
use crate::permission::Permissions;

pub use parse::FIELDS;
pub use path::TemplatePath;
pub use problem::{SourcePosition, TemplateProblem, TemplateProblems};

/// The prefix of managed names when a template names none.
pub const DEFAULT_PREFIX: &str = "SSO";

/// What a guild should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Whose objects these are; in the names of roles and categories.
    pub prefix: String,
    /// The highest first.
    pub roles: Vec<RoleSpec>,
    /// From top to bottom.
    pub categories: Vec<CategorySpec>,
    /// From top to bottom, inside their category.
    pub channels: Vec<ChannelSpec>,
    /// In the order in which they are posted.
    pub messages: Vec<MessageSpec>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSpec {
    /// Its key.
    pub key: ObjectKey,
    /// What people see.
    pub name: String,
    /// What its members may do everywhere.
    pub permissions: Permissions,
    /// 0xRRGGBB; 0 is none.
    pub color: u32,
    /// Whether its members are listed apart.
    pub hoist: bool,
    /// Whether everybody may mention it.
    pub mentionable: bool,
}

/// A category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategorySpec {
    /// Its key.
    pub key: ObjectKey,
    /// What people see.
    pub name: String,
    /// Who may do what in it.
    pub overwrites: Vec<OverwriteSpec>,
}

/// A channel that is no category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    /// Its key.
    pub key: ObjectKey,
    /// What its slug is made of.
    pub name: String,
    /// What kind of channel.
    pub channel_type: ChannelType,
    /// The category it is in.
    pub category: Option<ObjectKey>,
    /// Empty for none.
    pub topic: String,
    /// For adults.
    pub nsfw: bool,
    /// Seconds between two messages of one person.
    pub slow_mode: u32,
    /// Who may do what in it.
    pub access: OverwriteSource,
}

/// Where a channel's overwrites come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverwriteSource {
    /// Nothing is said: those of its category, or none.
    Inherited,
    /// These.
    Own(Vec<OverwriteSpec>),
    /// Those of another channel.
    SameAs(ObjectKey),
}

/// What kind of channel, as a template calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelType {
    /// `text`
    Text,
    /// `voice`
    Voice,
    /// `announcement`
    Announcement,
    /// `stage`
    Stage,
    /// `forum`
    Forum,
}

impl ChannelType {
    /// All of them, with their word and Discord's number.
    pub const ALL: [(Self, &'static str, u8); 5] = [
        (Self::Text, "text", 0),
        (Self::Voice, "voice", 2),
        (Self::Announcement, "announcement", 5),
        (Self::Stage, "stage", 13),
        (Self::Forum, "forum", 15),
    ];

    /// The word in a template.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(shape, ..)| *shape == self).map_or("", |(_, word, _)| word)
    }

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::ALL.iter().find(|(shape, ..)| *shape == self).map_or(0, |(.., number)| *number)
    }

    /// Whether it has a topic.
    #[must_use]
    pub fn has_topic(self) -> bool {
        matches!(self, Self::Text | Self::Announcement | Self::Forum)
    }

    /// Whether it has a slow mode.
    #[must_use]
    pub fn has_slow_mode(self) -> bool {
        self != Self::Announcement
    }

    /// Whether people hear each other in it. These are listed below the others.
    #[must_use]
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Voice | Self::Stage)
    }
}

/// What one role, or everybody, may do in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverwriteSpec {
    /// Whom it is about.
    pub target: OverwriteTarget,
    /// Granted.
    pub allow: Permissions,
    /// Taken.
    pub deny: Permissions,
}

/// Whom an overwrite is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverwriteTarget {
    /// `@everyone`
    Everyone,
    /// A role of the template.
    Role(ObjectKey),
}

/// A message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// Its key, which is in its marker.
    pub key: ObjectKey,
    /// Where it stands.
    pub channel: ObjectKey,
    /// What it says, without the marker.
    pub content: String,
}

impl Template {
    /// Reads a template. `file` is only what problems are told with.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn read(file: &str, text: &str) -> Result<Self, TemplateProblems> {
        let root = node::read(text).map_err(|problem| TemplateProblems::new(file, vec![problem]))?;
        let (template, mut problems) = parse::template(&root);
        for (path, message) in template.iter().flat_map(check::check_template) {
            problems.push(TemplateProblem { at: root.position_of(&path), path, message });
        }
        match template {
            Some(template) if problems.is_empty() => Ok(template),
            _ => Err(TemplateProblems::new(file, problems)),
        }
    }

    /// What is wrong with a template that was made in code: where, and a sentence.
    #[must_use]
    pub fn check(&self) -> Vec<(TemplatePath, String)> {
        check::check_template(self)
    }

    /// The overwrites of a channel, wherever they come from.
    #[must_use]
    pub fn overwrites_of<'a>(&'a self, channel: &'a ChannelSpec) -> &'a [OverwriteSpec] {
        let mut channel = channel;
        // As many steps as there are channels lead to the end, or in a circle.
        for _ in 0..=self.channels.len() {
            match &channel.access {
                OverwriteSource::Own(overwrites) => return overwrites,
                OverwriteSource::Inherited => {
                    let category =
                        self.categories.iter().find(|known| Some(&known.key) == channel.category.as_ref());
                    return category.map_or(&[], |category| &category.overwrites);
                }
                OverwriteSource::SameAs(key) => match self.channels.iter().find(|known| known.key == *key) {
                    Some(other) => channel = other,
                    None => return &[],
                },
            }
        }
        &[]
    }
}

#[cfg(test)]
mod tests;
