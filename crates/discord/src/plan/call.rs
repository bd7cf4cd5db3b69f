//! The one call of a step: its route, and a body that is complete once all earlier steps were
//! applied.

use serde_json::{Value, json};

use super::order;
use super::wire::{MissingObject, ObjectRef, UnresolvedJson};
use crate::Id;
use crate::guild::Guild;
use crate::journal::GuildJournal;

/// A call to Discord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// The route.
    pub route: GuildRoute,
    /// The body.
    pub body: CallBody,
}

/// The body of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBody {
    /// Nothing.
    None,
    /// Fields of an object.
    Fields(UnresolvedJson),
    /// Roles, highest first. Their positions depend on where all roles are by then.
    Roles(Vec<ObjectRef>),
    /// Channels that are listed together, each list from top to bottom. Positions as with roles.
    Channels(Vec<Vec<ObjectRef>>),
}

/// The HTTP method of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMethod {
    /// POST
    Post,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl WriteMethod {
    /// Returns the method as it is sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// The routes that change a guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuildRoute {
    /// Creates a role.
    RoleCreate,
    /// Edits a role.
    RoleEdit(Id),
    /// Removes a role.
    RoleRemove(Id),
    /// Moves roles.
    RolesMove,
    /// Creates a channel or category.
    ChannelCreate,
    /// Edits a channel or category.
    ChannelEdit(Id),
    /// Removes a channel or category.
    ChannelRemove(Id),
    /// Moves channels.
    ChannelsMove,
    /// Posts a message.
    MessageCreate(ObjectRef),
    /// Edits a message: channel and message.
    MessageEdit(Id, Id),
    /// Removes a message: channel and message.
    MessageRemove(Id, Id),
}

impl GuildRoute {
    /// Returns the HTTP method.
    #[must_use]
    pub fn method(&self) -> WriteMethod {
        match self {
            Self::RoleCreate | Self::ChannelCreate | Self::MessageCreate(_) => WriteMethod::Post,
            Self::RoleRemove(_) | Self::ChannelRemove(_) | Self::MessageRemove(..) => WriteMethod::Delete,
            Self::RoleEdit(_)
            | Self::ChannelEdit(_)
            | Self::MessageEdit(..)
            | Self::RolesMove
            | Self::ChannelsMove => WriteMethod::Patch,
        }
    }

    /// Returns the route as Discord's documentation writes it: limits belong to it.
    #[must_use]
    pub fn template(&self) -> &'static str {
        match self {
            Self::RoleCreate | Self::RolesMove => "/guilds/{guild}/roles",
            Self::RoleEdit(_) | Self::RoleRemove(_) => "/guilds/{guild}/roles/{role}",
            Self::ChannelCreate | Self::ChannelsMove => "/guilds/{guild}/channels",
            Self::ChannelEdit(_) | Self::ChannelRemove(_) => "/channels/{channel}",
            Self::MessageCreate(_) => "/channels/{channel}/messages",
            Self::MessageEdit(..) | Self::MessageRemove(..) => "/channels/{channel}/messages/{message}",
        }
    }

    /// Returns the channel that a limit of this route belongs to; `None` where it is the guild.
    #[must_use]
    pub fn channel(&self) -> Option<ObjectRef> {
        match self {
            Self::ChannelEdit(id)
            | Self::ChannelRemove(id)
            | Self::MessageEdit(id, _)
            | Self::MessageRemove(id, _) => Some(ObjectRef::Known(*id)),
            Self::MessageCreate(handle) => Some(handle.clone()),
            _ => None,
        }
    }

    /// Returns the path with its ids.
    fn path(&self, guild: Id, journal: &GuildJournal) -> Result<String, MissingObject> {
        Ok(match self {
            Self::RoleCreate | Self::RolesMove => format!("/guilds/{guild}/roles"),
            Self::RoleEdit(id) | Self::RoleRemove(id) => format!("/guilds/{guild}/roles/{id}"),
            Self::ChannelCreate | Self::ChannelsMove => format!("/guilds/{guild}/channels"),
            Self::ChannelEdit(id) | Self::ChannelRemove(id) => format!("/channels/{id}"),
            Self::MessageCreate(channel) => format!("/channels/{}/messages", channel.id(journal)?),
            Self::MessageEdit(channel, id) | Self::MessageRemove(channel, id) => {
                format!("/channels/{channel}/messages/{id}")
            }
        })
    }
}

/// A call as it is sent: the path below the version, without reason and token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRequest {
    /// The HTTP method.
    pub method: WriteMethod,
    /// `/guilds/…`
    pub path: String,
    /// The body.
    pub body: Option<Value>,
}

impl PlannedCall {
    /// Builds the request, once all earlier steps were applied and are in the journal. Returns
    /// `None` when there is nothing left to do: positions that turned out right by themselves.
    /// `guild` is only used for positions, and must be listed after the last create.
    ///
    /// # Errors
    /// When an object it refers to does not exist yet.
    pub fn request(
        &self,
        guild: &Guild,
        journal: &GuildJournal,
    ) -> Result<Option<CallRequest>, MissingObject> {
        let ids = |handles: &[ObjectRef]| {
            handles.iter().map(|handle| handle.id(journal)).collect::<Result<Vec<_>, _>>()
        };
        let moves = |moves: Vec<(Id, i64)>| {
            let entry = |(id, position)| json!({"id": id, "position": position});
            (!moves.is_empty()).then(|| Value::Array(moves.into_iter().map(entry).collect()))
        };
        let body = match &self.body {
            CallBody::None => None,
            CallBody::Fields(wire) => Some(wire.resolve(journal)?),
            CallBody::Roles(roles) => match moves(order::role_moves(guild, &ids(roles)?)) {
                None => return Ok(None),
                body => body,
            },
            CallBody::Channels(lists) => {
                let lists = lists.iter().map(|list| ids(list)).collect::<Result<Vec<_>, _>>()?;
                match moves(lists.iter().flat_map(|list| order::channel_moves(guild, list)).collect()) {
                    None => return Ok(None),
                    body => body,
                }
            }
        };
        Ok(Some(CallRequest { method: self.route.method(), path: self.route.path(guild.id, journal)?, body }))
    }

    /// Returns the body for people, with keys where ids are not known yet.
    #[must_use]
    pub fn to_display_json(&self) -> Value {
        let list = |handles: &[ObjectRef]| {
            Value::Array(handles.iter().map(|handle| handle.describe().into()).collect())
        };
        match &self.body {
            CallBody::None => Value::Null,
            CallBody::Fields(wire) => wire.to_display_json(),
            CallBody::Roles(roles) => list(roles),
            CallBody::Channels(lists) => Value::Array(lists.iter().map(|handles| list(handles)).collect()),
        }
    }
}
