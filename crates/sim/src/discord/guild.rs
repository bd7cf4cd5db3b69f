//! A guild: its roles, channels and messages, and the bots in it. The modules of its calls decide
//! who may change them, and when.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::channel::Channel;
use super::limits::DiscordLimits;
use super::message::Message;
use super::messages::Nonces;
use super::permissions::{ADMINISTRATOR, CallerPermissions, EVERYONE};
use super::refusal::{CallResult, CompletedCall, DiscordErrorCode, DiscordRefusal};
use super::role::Role;
use super::route::RouteTarget;
use super::snowflake::{SnowflakeGenerator, timestamp};
use super::window::WindowCounter;

/// The author of what the operator posts.
pub const SOMEBODY: u64 = 1_000_000_000_000_000_001;

/// The caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The operator of the simulator, to whom no rule applies.
    Operator,
    /// The bot with this id.
    Bot(u64),
}

/// A call as a guild sees it.
#[derive(Debug)]
pub struct GuildCall<'a> {
    /// The caller.
    pub actor: Actor,
    /// The time.
    pub now: Time,
    /// The route and its ids.
    pub target: RouteTarget,
    /// The body.
    pub body: &'a Value,
    /// The query string.
    pub query: &'a str,
    /// The source of new ids.
    pub ids: &'a mut SnowflakeGenerator,
    /// The limits.
    pub limits: &'a DiscordLimits,
}

/// The state of a guild. It contains everything that a call changes, so that a copy undoes it.
#[derive(Clone, Debug)]
pub struct Guild {
    /// Its id.
    pub id: u64,
    /// Its roles.
    pub roles: BTreeMap<u64, Role>,
    /// Its channels.
    pub channels: BTreeMap<u64, Channel>,
    /// The messages of each channel.
    pub messages: BTreeMap<u64, BTreeMap<u64, Message>>,
    /// The role of each bot.
    pub bots: BTreeMap<u64, u64>,
    /// The nonces of recent messages.
    pub nonces: Nonces,
    /// Renames, by channel.
    pub renames: HashMap<u64, WindowCounter>,
    /// Created roles.
    pub role_creates: WindowCounter,
    /// Whether it has the community features.
    pub has_community: bool,
}

/// The number of objects in a guild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuildStats {
    /// Roles, including @everyone and those of bots.
    pub roles: u64,
    /// Channels, including categories.
    pub channels: u64,
    /// Messages.
    pub messages: u64,
    /// Overwrites.
    pub overwrites: u64,
}

impl Guild {
    /// Creates a guild: @everyone and nothing else.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            roles: BTreeMap::from([(id, Role::new(id, "@everyone", 0, EVERYONE))]),
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            bots: BTreeMap::new(),
            nonces: Nonces::default(),
            renames: HashMap::new(),
            role_creates: WindowCounter::default(),
            has_community: true,
        }
    }

    /// Adds a bot with its own role, above all others, an administrator unless its permissions are
    /// given; once.
    pub fn join(&mut self, bot: u64, ids: &mut SnowflakeGenerator, now: Time, permissions: Option<u64>) {
        if self.bots.contains_key(&bot) {
            return;
        }
        let id = ids.next(now);
        let top = self.roles.values().map(|role| role.position).max().unwrap_or(0) + 1;
        let mut role = Role::new(id, &bot_name(bot), top, permissions.unwrap_or(ADMINISTRATOR));
        role.bot = Some(bot);
        self.roles.insert(id, role);
        self.bots.insert(bot, id);
    }

    /// Returns the caller's permissions; `None` means all.
    #[must_use]
    pub fn rights(&self, actor: Actor) -> Option<CallerPermissions> {
        let Actor::Bot(user) = actor else { return None };
        let role = self.bots.get(&user).and_then(|role| self.roles.get(role));
        let everyone = self.roles.get(&self.id).map_or(0, |role| role.permissions);
        Some(CallerPermissions {
            guild: self.id,
            user,
            role: role.map_or(0, |role| role.id),
            position: role.map_or(0, |role| role.position),
            held: everyone | role.map_or(0, |role| role.permissions),
        })
    }

    /// Checks that the caller holds these permissions in the guild.
    ///
    /// # Errors
    /// When it does not.
    pub fn require(&self, actor: Actor, bits: u64) -> Result<(), DiscordRefusal> {
        let held = self.rights(actor).is_none_or(|rights| rights.has(bits));
        if held { Ok(()) } else { Err(DiscordErrorCode::MissingPermissions.into()) }
    }

    /// Returns a member: a bot in the guild.
    ///
    /// # Errors
    /// When there is no such bot.
    pub fn member(&self, id: u64) -> CallResult {
        let role = self.bots.get(&id).ok_or(DiscordErrorCode::UnknownMember)?;
        Ok(CompletedCall::read(json!({
            "user": user(id), "roles": [role.to_string()], "nick": null, "avatar": null, "banner": null,
            "joined_at": timestamp(Time::ZERO), "premium_since": null, "deaf": false, "mute": false, "flags": 0,
            "pending": false, "communication_disabled_until": null,
        })))
    }

    /// Returns a channel.
    ///
    /// # Errors
    /// When there is none.
    pub fn channel(&self, id: Option<u64>) -> Result<&Channel, DiscordRefusal> {
        id.and_then(|id| self.channels.get(&id)).ok_or_else(|| DiscordErrorCode::UnknownChannel.into())
    }

    /// Returns a role.
    ///
    /// # Errors
    /// When there is none.
    pub fn role(&self, id: u64) -> Result<&Role, DiscordRefusal> {
        self.roles.get(&id).ok_or_else(|| DiscordErrorCode::UnknownRole.into())
    }

    /// Returns it as `GET /guilds/{guild}` shows it.
    #[must_use]
    pub fn json(&self) -> Value {
        let features: &[&str] = if self.has_community { &["COMMUNITY", "NEWS"] } else { &[] };
        json!({
            "id": self.id.to_string(), "name": format!("Guild {}", self.id), "icon": null, "description": null,
            "splash": null, "discovery_splash": null, "banner": null, "owner_id": SOMEBODY.to_string(),
            "application_id": null, "region": "deprecated", "afk_channel_id": null, "afk_timeout": 300,
            "system_channel_id": null, "system_channel_flags": 0, "widget_enabled": false,
            "widget_channel_id": null, "verification_level": 0, "roles": self.roles_json(),
            "default_message_notifications": 0, "mfa_level": 0, "explicit_content_filter": 0,
            "max_presences": null, "max_members": 500_000, "max_video_channel_users": 25,
            "max_stage_video_channel_users": 50, "vanity_url_code": null, "premium_tier": 0,
            "premium_subscription_count": 0, "preferred_locale": "en-US", "rules_channel_id": null,
            "safety_alerts_channel_id": null, "public_updates_channel_id": null, "hub_type": null,
            "premium_progress_bar_enabled": false, "nsfw": false, "nsfw_level": 0, "emojis": [],
            "stickers": [], "features": features, "incidents_data": null,
        })
    }

    /// Returns its roles.
    #[must_use]
    pub fn roles_json(&self) -> Value {
        self.roles.values().map(Role::json).collect()
    }

    /// Returns its channels.
    #[must_use]
    pub fn channels_json(&self) -> Value {
        self.channels.values().map(Channel::json).collect()
    }

    /// Returns everything in it.
    #[must_use]
    pub fn dump(&self) -> Value {
        let messages = self.messages.iter().map(|(channel, messages)| {
            let shown = messages.values().map(|message| message.json(&user(message.author)));
            (channel.to_string(), shown.collect::<Value>())
        });
        json!({
            "id": self.id.to_string(),
            "roles": self.roles_json(),
            "channels": self.channels_json(),
            "messages": messages.collect::<BTreeMap<_, _>>(),
        })
    }

    /// Counts its objects.
    #[must_use]
    pub fn stats(&self) -> GuildStats {
        GuildStats {
            roles: self.roles.len() as u64,
            channels: self.channels.len() as u64,
            messages: self.messages.values().map(|messages| messages.len() as u64).sum(),
            overwrites: self.channels.values().map(|channel| channel.overwrites.len() as u64).sum(),
        }
    }
}

/// Returns a user as the API shows one.
#[must_use]
pub fn user(id: u64) -> Value {
    let (name, bot) = if id == SOMEBODY { ("somebody".to_owned(), false) } else { (bot_name(id), true) };
    json!({
        "id": id.to_string(), "username": name, "global_name": null, "discriminator": "0", "avatar": null,
        "bot": bot, "public_flags": 0, "flags": 0, "mfa_enabled": true, "verified": true, "locale": "en-US",
    })
}

fn bot_name(bot: u64) -> String {
    format!("bot-{:04}", bot % 10_000)
}
