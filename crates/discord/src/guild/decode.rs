//! Decodes Discord's JSON into a guild.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Channel, Guild, Message, Overwrite, Role};
use crate::Id;
use crate::permission::Permissions;

/// A response that does not match Discord's documentation. It names the list, and reveals nothing
/// of its content.
#[derive(Debug)]
pub struct GuildDecodeError {
    what: &'static str,
    source: serde_json::Error,
}

impl fmt::Display for GuildDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.source.line(), self.source.column());
        write!(f, "Discord's list of {} cannot be read, from line {line}, column {column} on.", self.what)
    }
}

impl std::error::Error for GuildDecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[derive(Deserialize)]
struct WireRole {
    id: Id,
    name: String,
    permissions: Permissions,
    #[serde(default)]
    color: u32,
    colors: Option<WireColors>,
    #[serde(default)]
    hoist: bool,
    #[serde(default)]
    mentionable: bool,
    #[serde(default)]
    position: i64,
    #[serde(default)]
    managed: bool,
}

#[derive(Deserialize)]
struct WireColors {
    primary_color: u32,
}

#[derive(Deserialize)]
struct WireChannel {
    id: Id,
    #[serde(rename = "type")]
    kind: u8,
    name: Option<String>,
    #[serde(default)]
    position: i64,
    parent_id: Option<Id>,
    topic: Option<String>,
    nsfw: Option<bool>,
    rate_limit_per_user: Option<u32>,
    #[serde(default)]
    permission_overwrites: Vec<WireOverwrite>,
}

#[derive(Deserialize)]
struct WireOverwrite {
    id: Id,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    allow: Permissions,
    #[serde(default)]
    deny: Permissions,
}

#[derive(Deserialize)]
struct WireMessage {
    id: Id,
    #[serde(default)]
    content: String,
    author: Option<WireAuthor>,
}

#[derive(Deserialize)]
struct WireAuthor {
    id: Id,
}

impl Guild {
    /// Decodes a guild from the responses to `GET /guilds/{id}/roles` and `GET
    /// /guilds/{id}/channels`.
    ///
    /// # Errors
    /// When a response is not a list of such objects.
    pub fn decode(id: Id, roles: &[u8], channels: &[u8]) -> Result<Self, GuildDecodeError> {
        let roles: Vec<WireRole> = list("roles", roles)?;
        let channels: Vec<WireChannel> = list("channels", channels)?;
        Ok(Self {
            id,
            roles: roles.into_iter().map(Role::from).collect(),
            channels: channels.into_iter().map(Channel::from).collect(),
            messages: std::collections::BTreeMap::new(),
        })
    }

    /// Adds the messages in a response to `GET /channels/{id}/messages` that `me` wrote. May be
    /// called for each page.
    ///
    /// # Errors
    /// When the response is not a list of messages.
    pub fn add_messages(&mut self, channel: Id, me: Id, messages: &[u8]) -> Result<(), GuildDecodeError> {
        let read: Vec<WireMessage> = list("messages", messages)?;
        let own =
            read.into_iter().filter(|message| message.author.as_ref().is_some_and(|author| author.id == me));
        let known = self.messages.entry(channel).or_default();
        known.extend(own.map(|message| Message { id: message.id, content: message.content }));
        known.sort_by_key(|message| message.id);
        known.dedup_by_key(|message| message.id);
        Ok(())
    }
}

fn list<T: DeserializeOwned>(what: &'static str, json: &[u8]) -> Result<Vec<T>, GuildDecodeError> {
    serde_json::from_slice(json).map_err(|source| GuildDecodeError { what, source })
}

impl From<WireRole> for Role {
    fn from(wire: WireRole) -> Self {
        Self {
            id: wire.id,
            name: wire.name,
            permissions: wire.permissions,
            color: wire.colors.map_or(wire.color, |colors| colors.primary_color),
            hoist: wire.hoist,
            mentionable: wire.mentionable,
            position: wire.position,
            managed: wire.managed,
        }
    }
}

impl From<WireChannel> for Channel {
    fn from(wire: WireChannel) -> Self {
        let overwrite = |wire: WireOverwrite| Overwrite {
            id: wire.id,
            of_member: wire.kind == 1,
            allow: wire.allow,
            deny: wire.deny,
        };
        Self {
            id: wire.id,
            kind: wire.kind,
            name: wire.name.unwrap_or_default(),
            position: wire.position,
            parent: wire.parent_id,
            topic: wire.topic.unwrap_or_default(),
            nsfw: wire.nsfw.unwrap_or_default(),
            slow_mode: wire.rate_limit_per_user.unwrap_or_default(),
            overwrites: wire.permission_overwrites.into_iter().map(overwrite).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
