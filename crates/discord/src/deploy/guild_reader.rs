//! Lists the live guild through the queue: its roles and channels, and the bot's messages where
//! they matter.

use super::error::{Error, Result};
use super::queue::{GuildQueue, ResponseObject};
use crate::guild::Guild;
use crate::journal::GuildJournal;
use crate::name;
use crate::plan::{Matches, channels_to_read};
use crate::template::{MessageSpec, Template};
use crate::{Id, ObjectKind};

/// Messages per response, by Discord's own bound.
const PAGE: usize = 100;
/// Pages read from a channel that the journal knows, newest messages first: only what was posted a
/// moment ago is missing from the journal.
const PAGES_MAX: usize = 10;
/// Pages read from a channel when the journal was lost: a message may be anywhere.
const PAGES_LOST_MAX: usize = 100;

/// Lists the guild and reads the channels whose messages the journal does not settle; with `all`,
/// every channel that holds a message.
pub(super) async fn read_guild(
    queue: &GuildQueue<'_>,
    template: &Template,
    journal: &GuildJournal,
    all: bool,
) -> Result<Guild> {
    let roles = queue.read(format!("/guilds/{}/roles", queue.guild)).await?;
    let channels = queue.read(format!("/guilds/{}/channels", queue.guild)).await?;
    let mut guild = Guild::decode(queue.guild, roles.get().as_bytes(), channels.get().as_bytes())?;
    let unread = channels_to_read(template, &guild, journal, all);
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
        for _ in 0..pages {
            let page = self.queue.read(format!("/channels/{channel}/messages?limit={PAGE}{before}")).await?;
            guild.add_messages(channel, self.me, page.get().as_bytes())?;
            let ids: Vec<ResponseObject> =
                serde_json::from_str(page.get()).map_err(|_| unreadable("messages"))?;
            let oldest = ids.iter().map(|message| message.id).min();
            let Some(oldest) = oldest.filter(|_| ids.len() == PAGE) else {
                is_whole = true;
                break;
            };
            if self.missing(guild).is_empty() {
                break;
            }
            before = format!("&before={oldest}");
        }
        for message in self.missing(guild) {
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

    fn entry(&self, message: &MessageSpec) -> Option<Id> {
        let entry = self.journal.get(ObjectKind::Message, &message.key)?;
        (entry.channel == Some(self.channel)).then_some(entry.id)
    }

    async fn find_by_id(&self, guild: &mut Guild, message: &MessageSpec, id: Id) -> Result<()> {
        let path = format!("/channels/{}/messages/{id}", self.channel);
        let Some(found) = self.queue.find(path).await? else { return Ok(()) };
        guild.add_messages(self.channel, self.me, format!("[{}]", found.get()).as_bytes())?;
        if self.missing(guild).iter().any(|missing| missing.key == message.key) {
            let key = &message.key;
            return Err(Error::Invalid(format!(
                "The message {key} ({id}) was posted by another bot, which alone can edit it. Use that bot's token, or delete the message."
            )));
        }
        Ok(())
    }
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
