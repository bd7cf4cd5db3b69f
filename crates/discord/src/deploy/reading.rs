//! The live guild, listed through the queue: its roles and channels, and the bot's messages where they matter.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::error::{Error, Result};
use super::queue::Queue;
use crate::Id;
use crate::guild::Guild;
use crate::journal::Journal;
use crate::plan::to_read;
use crate::template::Template;

/// Messages that one answer lists at the most, by Discord's own bound.
const PAGE: usize = 100;
/// Answers that are read of one channel, the newest messages first. What stands deeper is found by the journal alone.
const PAGES_MAX: usize = 10;

#[derive(Deserialize)]
struct HasId {
    id: Id,
}

/// Lists the guild, and reads the channels whose messages the journal does not settle; with `all` every one that holds a
/// message.
pub(super) async fn guild(
    queue: &Queue<'_>,
    template: &Template,
    journal: &Journal,
    all: bool,
) -> Result<Guild> {
    let roles = queue.read(format!("/guilds/{}/roles", queue.guild)).await?;
    let channels = queue.read(format!("/guilds/{}/channels", queue.guild)).await?;
    let mut guild = Guild::decode(queue.guild, roles.get().as_bytes(), channels.get().as_bytes())?;
    let unread = to_read(template, &guild, journal, all);
    messages(queue, &mut guild, unread).await?;
    Ok(guild)
}

async fn messages(queue: &Queue<'_>, guild: &mut Guild, channels: BTreeSet<Id>) -> Result<()> {
    if channels.is_empty() {
        return Ok(());
    }
    let me = queue.read("/users/@me".into()).await?;
    let me: HasId = serde_json::from_str(me.get()).map_err(|_| no_list("user"))?;
    for channel in channels {
        let mut before = String::new();
        for _ in 0..PAGES_MAX {
            let page = queue.read(format!("/channels/{channel}/messages?limit={PAGE}{before}")).await?;
            guild.add_messages(channel, me.id, page.get().as_bytes())?;
            let ids: Vec<HasId> = serde_json::from_str(page.get()).map_err(|_| no_list("messages"))?;
            let Some(oldest) = ids.iter().map(|message| message.id).min().filter(|_| ids.len() == PAGE)
            else {
                break;
            };
            before = format!("&before={oldest}");
        }
    }
    Ok(())
}

fn no_list(what: &str) -> Error {
    Error::Invalid(format!("Discord's answer about {what} cannot be read."))
}
