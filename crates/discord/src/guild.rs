//! The live guild as the planner sees it: what Discord lists, with the fields that a template can say something
//! about. Everything else in Discord's JSON is passed over, so that new fields and new types of channels break nothing.

mod decode;

use std::collections::BTreeMap;

use crate::Id;
use crate::permission::Permissions;

pub use decode::GuildDecodeError;

/// Discord's number for a category.
pub const CATEGORY: u8 = 4;

/// A guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guild {
    /// Its id, which is also the id of the role @everyone.
    pub id: Id,
    /// All roles.
    pub roles: Vec<Role>,
    /// All channels with the categories, without threads.
    pub channels: Vec<Channel>,
    /// The bot's own messages, by channel. A channel that is not here was not read.
    pub messages: BTreeMap<Id, Vec<Message>>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its id.
    pub id: Id,
    /// Its whole name.
    pub name: String,
    /// What its members may do.
    pub permissions: Permissions,
    /// 0xRRGGBB; the first one where it has several.
    pub color: u32,
    /// Listed apart.
    pub hoist: bool,
    /// May be mentioned.
    pub mentionable: bool,
    /// Higher is higher.
    pub position: i64,
    /// Belongs to an integration: nobody else may change it.
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
    /// Lower is higher.
    pub position: i64,
    /// The category it is in.
    pub parent: Option<Id>,
    /// Empty for none.
    pub topic: String,
    /// For adults.
    pub nsfw: bool,
    /// Seconds.
    pub slow_mode: u32,
    /// Who may do what.
    pub overwrites: Vec<Overwrite>,
}

/// An overwrite of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overwrite {
    /// The role or member.
    pub id: Id,
    /// Whether it is about a member.
    pub of_member: bool,
    /// Granted.
    pub allow: Permissions,
    /// Taken.
    pub deny: Permissions,
}

/// A message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: Id,
    /// What it says.
    pub content: String,
}

impl Guild {
    /// The role with this id.
    #[must_use]
    pub fn role(&self, id: Id) -> Option<&Role> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// The channel or category with this id.
    #[must_use]
    pub fn channel(&self, id: Id) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.id == id)
    }

    /// The channel in which a message of the bot's was read.
    #[must_use]
    pub fn channel_of_message(&self, id: Id) -> Option<Id> {
        let holds = |own: &[Message]| own.iter().any(|message| message.id == id);
        self.messages.iter().find(|(_, own)| holds(own)).map(|(channel, _)| *channel)
    }

    /// Roles from the highest to @everyone. Of two on one position the older is the higher.
    #[must_use]
    pub fn roles_in_order(&self) -> Vec<&Role> {
        let mut roles: Vec<_> = self.roles.iter().collect();
        roles.sort_by_key(|role| (std::cmp::Reverse(role.position), role.id));
        roles
    }

    /// Channels from top to bottom. Of two on one position the older is the higher.
    #[must_use]
    pub fn channels_in_order(&self) -> Vec<&Channel> {
        let mut channels: Vec<_> = self.channels.iter().collect();
        channels.sort_by_key(|channel| (channel.position, channel.id));
        channels
    }
}
