//! A guild as somebody wants it: roles, categories, channels, overwrites and messages, each with a key that stays.
//! A template is read from YAML and checked as a whole; what is wrong is told all at once, with line and column.

mod check;
mod node;
mod parse;
mod path;
mod problem;
mod reader;

use crate::Key;
use crate::permission::Permissions;

pub use parse::FIELDS;
pub use path::Path;
pub use problem::{Place, Problem, Problems};

/// The prefix of managed names when a template names none.
pub const DEFAULT_PREFIX: &str = "SSO";

/// What a guild should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Whose objects these are; in the names of roles and categories.
    pub prefix: String,
    /// The highest first.
    pub roles: Vec<Role>,
    /// From top to bottom.
    pub categories: Vec<Category>,
    /// From top to bottom, inside their category.
    pub channels: Vec<Channel>,
    /// In the order in which they are posted.
    pub messages: Vec<Message>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its key.
    pub key: Key,
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
pub struct Category {
    /// Its key.
    pub key: Key,
    /// What people see.
    pub name: String,
    /// Who may do what in it.
    pub overwrites: Vec<Overwrite>,
}

/// A channel that is no category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its key.
    pub key: Key,
    /// What its slug is made of.
    pub name: String,
    /// What kind of channel.
    pub shape: Shape,
    /// The category it is in.
    pub category: Option<Key>,
    /// Empty for none.
    pub topic: String,
    /// For adults.
    pub nsfw: bool,
    /// Seconds between two messages of one person.
    pub slow_mode: u32,
    /// Who may do what in it.
    pub access: Access,
}

/// Where a channel's overwrites come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing is said: those of its category, or none.
    OfCategory,
    /// These.
    Own(Vec<Overwrite>),
    /// Those of another channel.
    SameAs(Key),
}

/// What kind of channel, as a template calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
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

impl Shape {
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
    pub fn word(self) -> &'static str {
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
    pub fn is_heard(self) -> bool {
        matches!(self, Self::Voice | Self::Stage)
    }
}

/// What one role, or everybody, may do in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwrite {
    /// Whom it is about.
    pub whom: Whom,
    /// Granted.
    pub allow: Permissions,
    /// Taken.
    pub deny: Permissions,
}

/// Whom an overwrite is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// `@everyone`
    Everyone,
    /// A role of the template.
    Role(Key),
}

/// A message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its key, which is in its marker.
    pub key: Key,
    /// Where it stands.
    pub channel: Key,
    /// What it says, without the marker.
    pub content: String,
}

impl Template {
    /// Reads a template. `file` is only what problems are told with.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn read(file: &str, text: &str) -> Result<Self, Problems> {
        let root = node::read(text).map_err(|problem| Problems::new(file, vec![problem]))?;
        let (template, mut problems) = parse::template(&root);
        for (path, message) in template.iter().flat_map(check::all) {
            problems.push(Problem { at: root.place_of(&path), path, message });
        }
        match template {
            Some(template) if problems.is_empty() => Ok(template),
            _ => Err(Problems::new(file, problems)),
        }
    }

    /// What is wrong with a template that was made in code: where, and a sentence.
    #[must_use]
    pub fn check(&self) -> Vec<(Path, String)> {
        check::all(self)
    }

    /// The overwrites of a channel, wherever they come from.
    #[must_use]
    pub fn overwrites_of<'a>(&'a self, channel: &'a Channel) -> &'a [Overwrite] {
        let mut channel = channel;
        // As many steps as there are channels lead to the end, or in a circle.
        for _ in 0..=self.channels.len() {
            match &channel.access {
                Access::Own(overwrites) => return overwrites,
                Access::OfCategory => {
                    let category =
                        self.categories.iter().find(|known| Some(&known.key) == channel.category.as_ref());
                    return category.map_or(&[], |category| &category.overwrites);
                }
                Access::SameAs(key) => match self.channels.iter().find(|known| known.key == *key) {
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
