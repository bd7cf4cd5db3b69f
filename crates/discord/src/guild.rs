//! The live guild as the planner sees it: what Discord lists, reduced to the fields that a template
//! can describe. Everything else in Discord's JSON is ignored, so that new fields and new channel
//! types break nothing.

mod decode;

use std::collections::BTreeMap;

use crate::Id;
use crate::permission::Permissions;

pub use decode::GuildDecodeError;

/// Discord's type number of a category.
pub const CATEGORY: u8 = 4;

/// A guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guild {
    /// Its id, which is also the id of the role @everyone.
    pub id: Id,
    /// All roles.
    pub roles: Vec<Role>,
    /// All channels including categories, without threads.
    pub channels: Vec<Channel>,
    /// The bot's own messages, by channel. A channel without an entry was not read.
    pub messages: BTreeMap<Id, Vec<Message>>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its id.
    pub id: Id,
    /// Its whole name.
    pub name: String,
    /// The permissions of its members.
    pub permissions: Permissions,
    /// 0xRRGGBB; the first color where it has several.
    pub color: u32,
    /// Whether its members are listed separately.
    pub hoist: bool,
    /// Whether anyone may mention it.
    pub mentionable: bool,
    /// A higher number is higher in the list.
    pub position: i64,
    /// Whether it belongs to an integration: no one else may change it.
    pub managed: bool,
}

/// A channel of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its id.
    pub id: Id,
    /// Discord's number of its type.
    pub kind: u8,
    /// Its whole name.
    pub name: String,
    /// A lower number is higher in the list.
    pub position: i64,
    /// The category it is in.
    pub parent: Option<Id>,
    /// Empty for none.
    pub topic: String,
    /// Whether it is age-restricted.
    pub nsfw: bool,
    /// Seconds between two messages of one person.
    pub slow_mode: u32,
    /// Its permission overwrites.
    pub overwrites: Vec<Overwrite>,
}

/// An overwrite of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overwrite {
    /// The role or member.
    pub id: Id,
    /// Whether it is about a member.
    pub of_member: bool,
    /// Permissions granted.
    pub allow: Permissions,
    /// Permissions denied.
    pub deny: Permissions,
}

/// What the bot is in the guild, as far as it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotStanding {
    /// Its id.
    pub id: Id,
    /// Its roles, without @everyone.
    pub roles: Vec<Id>,
    /// Its permissions in the guild.
    pub permissions: Permissions,
    /// The position of its highest role.
    pub top_position: i64,
    /// Whether it owns the guild, so that it may do everything.
    pub is_owner: bool,
    /// Whether the guild has the community features; none when the server does not say.
    pub has_community: Option<bool>,
}

/// A message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: Id,
    /// Its text.
    pub content: String,
}

impl Guild {
    /// Returns the role with this id.
    #[must_use]
    pub fn role(&self, id: Id) -> Option<&Role> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// Returns the channel or category with this id.
    #[must_use]
    pub fn channel(&self, id: Id) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.id == id)
    }

    /// Returns the channel in which a message of the bot was read.
    #[must_use]
    pub fn channel_of_message(&self, id: Id) -> Option<Id> {
        let holds = |own: &[Message]| own.iter().any(|message| message.id == id);
        self.messages.iter().find(|(_, own)| holds(own)).map(|(channel, _)| *channel)
    }

    /// Returns the roles from the highest to @everyone. Of two with one position the older is
    /// higher.
    #[must_use]
    pub fn roles_in_order(&self) -> Vec<&Role> {
        let mut roles: Vec<_> = self.roles.iter().collect();
        roles.sort_by_key(|role| (std::cmp::Reverse(role.position), role.id));
        roles
    }

    /// Returns the channels from top to bottom. Of two with one position the older is higher.
    #[must_use]
    pub fn channels_in_order(&self) -> Vec<&Channel> {
        let mut channels: Vec<_> = self.channels.iter().collect();
        channels.sort_by_key(|channel| (channel.position, channel.id));
        channels
    }
}
