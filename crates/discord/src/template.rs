//! The desired state of a guild: roles, categories, channels, overwrites and messages, each with a
//! stable key. A template is read from YAML and checked as a whole; all problems are reported at
//! once, with line and column.

mod check;
mod names;
mod node;
mod parse;
mod path;
mod problem;
mod reader;

use crate::ObjectKey;
use crate::permission::Permissions;

pub use names::NameStyle;
pub use parse::FIELDS;
pub use path::TemplatePath;
pub use problem::{SourcePosition, TemplateProblem, TemplateProblems};

/// The prefix of managed names when a template has none.
pub const DEFAULT_PREFIX: &str = "SSO";

/// The objects a guild should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The owner's prefix, part of the names of roles and categories.
    pub prefix: String,
    /// How the names of its objects look in Discord.
    pub names: NameStyle,
    /// Roles, highest first.
    pub roles: Vec<RoleSpec>,
    /// Categories, from top to bottom.
    pub categories: Vec<CategorySpec>,
    /// Channels, from top to bottom within their category.
    pub channels: Vec<ChannelSpec>,
    /// Messages, in the order in which they are posted.
    pub messages: Vec<MessageSpec>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSpec {
    /// Its key.
    pub key: ObjectKey,
    /// Its display name.
    pub name: String,
    /// The permissions of its members in the whole guild.
    pub permissions: Permissions,
    /// 0xRRGGBB; 0 is none.
    pub color: u32,
    /// Whether its members are listed separately.
    pub hoist: bool,
    /// Whether anyone may mention it.
    pub mentionable: bool,
}

/// A category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategorySpec {
    /// Its key.
    pub key: ObjectKey,
    /// Its display name.
    pub name: String,
    /// Its permission overwrites.
    pub overwrites: Vec<OverwriteSpec>,
}

/// A channel other than a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    /// Its key.
    pub key: ObjectKey,
    /// The name its slug is made from.
    pub name: String,
    /// Its type.
    pub channel_type: ChannelType,
    /// The category it is in.
    pub category: Option<ObjectKey>,
    /// Empty for none.
    pub topic: String,
    /// Whether it is age-restricted.
    pub nsfw: bool,
    /// Seconds between two messages of one person.
    pub slow_mode: u32,
    /// Its permission overwrites.
    pub access: OverwriteSource,
}

/// The source of a channel's overwrites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverwriteSource {
    /// Not given: those of its category, or none.
    Inherited,
    /// Its own.
    Own(Vec<OverwriteSpec>),
    /// Those of another channel.
    SameAs(ObjectKey),
}

/// The type of a channel, as a template names it.
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
    /// All types, with their word in a template and Discord's number.
    pub const ALL: [(Self, &'static str, u8); 5] = [
        (Self::Text, "text", 0),
        (Self::Voice, "voice", 2),
        (Self::Announcement, "announcement", 5),
        (Self::Stage, "stage", 13),
        (Self::Forum, "forum", 15),
    ];

    /// Returns the word in a template.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(shape, ..)| *shape == self).map_or("", |(_, word, _)| word)
    }

    /// Returns the number on the wire.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::ALL.iter().find(|(shape, ..)| *shape == self).map_or(0, |(.., number)| *number)
    }

    /// Returns whether it has a topic.
    #[must_use]
    pub fn has_topic(self) -> bool {
        matches!(self, Self::Text | Self::Announcement | Self::Forum)
    }

    /// Returns whether it has a slow mode.
    #[must_use]
    pub fn has_slow_mode(self) -> bool {
        self != Self::Announcement
    }

    /// Returns whether it is a voice type. These are listed below the others.
    #[must_use]
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Voice | Self::Stage)
    }
}

/// The permissions of one role, or of everyone, in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverwriteSpec {
    /// The role, or everyone.
    pub target: OverwriteTarget,
    /// Permissions granted.
    pub allow: Permissions,
    /// Permissions denied.
    pub deny: Permissions,
}

/// The target of an overwrite.
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
    /// The channel it is posted in.
    pub channel: ObjectKey,
    /// Its text, without the marker.
    pub content: String,
}

impl Template {
    /// Reads a template. `file` is only used in the messages of problems.
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

    /// Returns the problems of a template that was built in code, each with its path and a
    /// sentence.
    #[must_use]
    pub fn check(&self) -> Vec<(TemplatePath, String)> {
        check::check_template(self)
    }

    /// Returns the overwrites of a channel, from whichever source.
    #[must_use]
    pub fn overwrites_of<'a>(&'a self, channel: &'a ChannelSpec) -> &'a [OverwriteSpec] {
        let mut channel = channel;
        // As many steps as there are channels lead to the end, or in a cycle.
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
