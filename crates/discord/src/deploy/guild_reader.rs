//! Lists the live guild through the queue: its roles and channels, and the bot's messages where
//! they matter.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};
use super::queue::{GuildQueue, ResponseObject};
use crate::guild::{BotStanding, Guild};
use crate::journal::GuildJournal;
use crate::name;
use crate::permission::Permissions;
use crate::plan::{Matches, channels_to_read};
use crate::template::{MessageSpec, Template};
use crate::{Id, ObjectKey, ObjectKind};

/// Messages per response, by Discord's own bound.
const PAGE: usize = 100;
/// Pages read from a channel that the journal knows, newest messages first: only what was posted a
/// moment ago is missing from the journal.
const PAGES_MAX: usize = 10;
/// Pages read from a channel when the journal was lost: a message may be anywhere.
const PAGES_LOST_MAX: usize = 100;

/// The messages to read besides those that the journal does not settle.
#[derive(Clone, Copy)]
pub(super) struct MessageScope<'a> {
    /// Whether to read all of them.
    pub(super) all: bool,
    /// Those to read in any case.
    pub(super) written: &'a BTreeSet<ObjectKey>,
}

impl MessageScope<'_> {
    /// All messages.
    pub(super) const ALL: Self = Self { all: true, written: &BTreeSet::new() };
}

/// Lists the guild and reads the channels of messages.
pub(super) async fn read_guild(
    queue: &GuildQueue<'_>,
    template: &Template,
    journal: &GuildJournal,
    messages: MessageScope<'_>,
) -> Result<Guild> {
    let roles = queue.read(format!("/guilds/{}/roles", queue.guild)).await?;
    let channels = queue.read(format!("/guilds/{}/channels", queue.guild)).await?;
    let mut guild = Guild::decode(queue.guild, roles.get().as_bytes(), channels.get().as_bytes())?;
    let reads = |key: &ObjectKey| messages.all || messages.written.contains(key);
    let unread = channels_to_read(template, &guild, journal, reads);
    if unread.is_empty() {
        return Ok(guild);
    }
    let me = queue.read("/users/@me".into()).await?;
    let me: ResponseObject = serde_json::from_str(me.get()).map_err(|_| unreadable("the bot itself"))?;
    let (matches, _) = Matches::find(template, &guild, journal);
    for channel in unread {
        let here =
            |message: &&MessageSpec| matches.id(ObjectKind::Channel, &message.channel) == Some(channel);
        let wanted: Vec<_> = template.messages.iter().filter(here).collect();
        let known = |message: &&MessageSpec| {
            journal.get(ObjectKind::Channel, &message.channel).is_some_and(|entry| entry.id == channel)
        };
        let is_known = wanted.iter().any(known);
        let search = MessageSearch { queue, template, journal, me: me.id, channel, wanted };
        search.find_messages(&mut guild, if is_known { PAGES_MAX } else { PAGES_LOST_MAX }, is_known).await?;
    }
    Ok(guild)
}

#[derive(Deserialize)]
struct WireMember {
    roles: Vec<Id>,
}

#[derive(Deserialize)]
struct WireGuild {
    owner_id: Option<Id>,
    features: Option<Vec<String>>,
}

/// Reads what the bot is in the guild; none when the server does not say.
pub(super) async fn read_standing(queue: &GuildQueue<'_>, guild: &Guild) -> Result<Option<BotStanding>> {
    let Some(me) = read_known::<ResponseObject>(queue, "/users/@me".into()).await? else { return Ok(None) };
    let path = format!("/guilds/{}/members/{}", queue.guild, me.id);
    let Some(member) = read_known::<WireMember>(queue, path).await? else { return Ok(None) };
    let about = read_known::<WireGuild>(queue, format!("/guilds/{}", queue.guild)).await?;
    let own = guild.roles.iter().filter(|role| role.id == guild.id || member.roles.contains(&role.id));
    let own: Vec<_> = own.collect();
    if own.len() <= member.roles.len() {
        // It has a role that is not listed: what it may do is unknown.
        return Ok(None);
    }
    let features = about.as_ref().and_then(|about| about.features.as_ref());
    Ok(Some(BotStanding {
        id: me.id,
        roles: member.roles.clone(),
        permissions: own.iter().fold(Permissions(0), |all, role| all.union(role.permissions)),
        top_position: own.iter().map(|role| role.position).max().unwrap_or(0),
        is_owner: about.as_ref().is_some_and(|about| about.owner_id == Some(me.id)),
        has_community: features.map(|features| features.iter().any(|feature| feature == "COMMUNITY")),
    }))
}

/// Reads an object that not every server shows to a bot.
async fn read_known<T: DeserializeOwned>(queue: &GuildQueue<'_>, path: String) -> Result<Option<T>> {
    match queue.read_optional(path).await {
        Ok(body) => Ok(serde_json::from_str(body.get()).ok()),
        Err(Error::ReadFailed(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A message of anyone.
#[derive(Deserialize)]
struct WireMessage {
    id: Id,
    #[serde(default)]
    content: String,
    #[serde(default)]
    author: WireAuthor,
}

#[derive(Default, Deserialize)]
struct WireAuthor {
    id: Option<Id>,
    #[serde(default)]
    bot: bool,
}

/// Searches one channel for its messages.
struct MessageSearch<'a> {
    queue: &'a GuildQueue<'a>,
    template: &'a Template,
    journal: &'a GuildJournal,
    me: Id,
    channel: Id,
    wanted: Vec<&'a MessageSpec>,
}

impl MessageSearch<'_> {
    async fn find_messages(&self, guild: &mut Guild, pages: usize, is_known: bool) -> Result<()> {
        let channel = self.channel;
        let (mut before, mut is_whole) = (String::new(), false);
        let mut foreign = Vec::new();
        for _ in 0..pages {
            let page = self.queue.read(format!("/channels/{channel}/messages?limit={PAGE}{before}")).await?;
            guild.add_messages(channel, self.me, page.get().as_bytes())?;
            let read: Vec<WireMessage> =
                serde_json::from_str(page.get()).map_err(|_| unreadable("messages"))?;
            let oldest = read.iter().map(|message| message.id).min();
            let is_full = read.len() == PAGE;
            foreign.extend(read.into_iter().filter(|message| message.author.id != Some(self.me)));
            let Some(oldest) = oldest.filter(|_| is_full) else {
                is_whole = true;
                break;
            };
            if self.missing(guild).is_empty() {
                break;
            }
            before = format!("&before={oldest}");
        }
        for message in self.missing(guild) {
            if let Some(id) = self.find_foreign(message, &foreign) {
                return Err(posted_by_another_bot(message, id));
            }
            match self.entry(message) {
                // It may be further back than was read.
                Some(id) if !is_whole => self.find_by_id(guild, message, id).await?,
                None if !is_whole && !is_known => return Err(too_deep(message, channel, pages)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the messages that were not found yet.
    fn missing(&self, guild: &Guild) -> Vec<&MessageSpec> {
        let own = guild.messages.get(&self.channel).map(Vec::as_slice).unwrap_or_default();
        let found = |message: &MessageSpec| {
            let mark = Some((self.template.prefix.as_str(), message.key.clone()));
            let known = self.entry(message);
            own.iter().any(|own| Some(own.id) == known || name::parse_message_marker(&own.content) == mark)
        };
        self.wanted.iter().copied().filter(|message| !found(message)).collect()
    }

    /// Returns the message if another bot posted it: the one that the journal knows, or one with
    /// its key. A person who repeats the key is no bot.
    fn find_foreign(&self, message: &MessageSpec, foreign: &[WireMessage]) -> Option<Id> {
        let (mark, known) = (Some((self.template.prefix.as_str(), message.key.clone())), self.entry(message));
        let is_it = |other: &&WireMessage| {
            Some(other.id) == known || other.author.bot && name::parse_message_marker(&other.content) == mark
        };
        foreign.iter().find(is_it).map(|other| other.id)
    }

    fn entry(&self, message: &MessageSpec) -> Option<Id> {
        let entry = self.journal.get(ObjectKind::Message, &message.key)?;
        (entry.channel == Some(self.channel)).then_some(entry.id)
    }

    async fn find_by_id(&self, guild: &mut Guild, message: &MessageSpec, id: Id) -> Result<()> {
        let path = format!("/channels/{}/messages/{id}", self.channel);
        let Some(found) = self.queue.find(path).await? else { return Ok(()) };
        guild.add_messages(self.channel, self.me, format!("[{}]", found.get()).as_bytes())?;
        if self.missing(guild).iter().any(|missing| missing.key == message.key) {
            return Err(posted_by_another_bot(message, id));
        }
        Ok(())
    }
}

fn posted_by_another_bot(message: &MessageSpec, id: Id) -> Error {
    let key = &message.key;
    Error::Invalid(format!(
        "The message {key} ({id}) was posted by another bot, which alone can edit it. Use that bot's token, or delete the message."
    ))
}

fn unreadable(what: &str) -> Error {
    Error::Invalid(format!("Discord's response about {what} cannot be read."))
}

fn too_deep(message: &MessageSpec, channel: Id, pages: usize) -> Error {
    let (key, count) = (&message.key, pages * PAGE);
    Error::Invalid(format!(
        "The message {key} is not among the newest {count} messages of channel {channel}, and the journal does not know it: it may be further back. Give the message another key to have it posted again."
    ))
}
