//! Calls on messages: one message per nonce, edits by their author, and pages of them. Each channel
//! keeps a bounded number.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use hyper::StatusCode;
use serde_json::Value;
use tidegate_core::Time;

use super::form::{Form, invalid};
use super::guild::{Actor, Guild, GuildCall, SOMEBODY, user};
use super::message::{Message, MessageDraft};
use super::permissions::{MANAGE_MESSAGES, SEND_MESSAGES};
use super::refusal::{CallResult, CompletedCall, DiscordErrorCode, DiscordRefusal};
use super::snowflake;

/// Most messages per channel; beyond it the oldest is dropped.
const MESSAGES_MAX: usize = 10_000;
/// Most nonces per guild.
const NONCES_MAX: usize = 10_000;

/// The nonces of messages, remembered for some minutes.
#[derive(Clone, Debug, Default)]
pub struct Nonces(VecDeque<NonceRecord>);

#[derive(Clone, Debug)]
struct NonceRecord {
    at: Time,
    author: u64,
    nonce: String,
    channel: u64,
    message: u64,
}

impl Guild {
    /// Posts a message, or shows the one with the same nonce. A deleted one is not posted again.
    ///
    /// # Errors
    /// When it is refused.
    pub fn create_message(&mut self, turn: &mut GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        let mut form = Form::of(turn.body);
        let draft = MessageDraft::read(&mut form);
        form.finish()?;
        self.require_in_channel(turn.actor, channel, SEND_MESSAGES)?;
        if !channel.takes_messages() {
            return Err(DiscordErrorCode::NoText.into());
        }
        let (id, author) = (channel.id, author(turn.actor));
        let nonce = draft.nonce.as_ref().map(Value::to_string);
        while self.nonces.0.front().is_some_and(|named| {
            named.at.after(turn.limits.nonce()) <= turn.now || self.nonces.0.len() >= NONCES_MAX
        }) {
            self.nonces.0.pop_front();
        }
        if let Some(nonce) = nonce.as_ref().filter(|_| draft.enforced) {
            let of = |named: &&NonceRecord| named.author == author && named.nonce == *nonce;
            if let Some(named) = self.nonces.0.iter().rev().find(of) {
                let found = self.messages.get(&named.channel).and_then(|all| all.get(&named.message));
                let found = found.ok_or(DiscordErrorCode::UnknownMessage)?;
                return Ok(CompletedCall::read(found.json(&user(author))));
            }
        }
        let mut message = Message::new(turn.ids.next(turn.now), id, author, turn.now);
        message.apply(draft, None);
        if message.is_empty() {
            return Err(DiscordErrorCode::EmptyMessage.into());
        }
        if let Some(nonce) = nonce {
            let message = message.id;
            self.nonces.0.push_back(NonceRecord { at: turn.now, author, nonce, channel: id, message });
        }
        Ok(self.store_message(id, message))
    }

    fn store_message(&mut self, channel: u64, message: Message) -> CompletedCall {
        let (id, shown) = (message.id, message.json(&user(message.author)));
        let all = self.messages.entry(channel).or_default();
        if all.len() >= MESSAGES_MAX {
            all.pop_first();
        }
        all.insert(id, message);
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.last_message = Some(id);
        }
        CompletedCall::wrote(StatusCode::OK, id, shown)
    }

    /// Lists messages, newest first.
    ///
    /// # Errors
    /// When it is refused.
    pub fn list_messages(&self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        self.require_in_channel(turn.actor, channel, 0)?;
        let page = MessagePage::of(turn.query)?;
        let none = BTreeMap::new();
        let all = self.messages.get(&channel.id).unwrap_or(&none);
        let shown: Vec<_> = match page {
            MessagePage { after: Some(after), limit, .. } => {
                let mut next: Vec<_> =
                    all.range((Excluded(after), Unbounded)).map(|(_, message)| message).take(limit).collect();
                next.reverse();
                next
            }
            MessagePage { before, limit, .. } => {
                all.range(..before).rev().map(|(_, message)| message).take(limit).collect()
            }
        };
        Ok(CompletedCall::read(
            shown.into_iter().map(|message| message.json(&user(message.author))).collect(),
        ))
    }

    /// Shows a message.
    ///
    /// # Errors
    /// When it is refused.
    pub fn show_message(&self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        self.require_in_channel(turn.actor, channel, 0)?;
        let message = self.message(channel.id, turn.target.inner)?;
        Ok(CompletedCall::read(message.json(&user(message.author))))
    }

    /// Edits one of the caller's own messages.
    ///
    /// # Errors
    /// When it is refused.
    pub fn edit_message(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        let known = self.message(channel.id, turn.target.inner)?;
        let mut form = Form::of(turn.body);
        let draft = MessageDraft::read(&mut form);
        form.finish()?;
        self.require_in_channel(turn.actor, channel, 0)?;
        if turn.actor != Actor::Operator && known.author != author(turn.actor) {
            return Err(DiscordErrorCode::OthersMessage.into());
        }
        let mut changed = known.clone();
        changed.apply(draft, Some(turn.now));
        if changed.is_empty() {
            return Err(DiscordErrorCode::EmptyMessage.into());
        }
        let (id, shown) = (changed.id, changed.json(&user(changed.author)));
        self.messages.entry(changed.channel).or_default().insert(id, changed);
        Ok(CompletedCall::wrote(StatusCode::OK, id, shown))
    }

    /// Deletes a message.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete_message(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        let known = self.message(channel.id, turn.target.inner)?;
        let needed = if known.author == author(turn.actor) { 0 } else { MANAGE_MESSAGES };
        self.require_in_channel(turn.actor, channel, needed)?;
        let (channel, id) = (channel.id, known.id);
        self.messages.entry(channel).or_default().remove(&id);
        Ok(CompletedCall::no_content(id))
    }

    fn message(&self, channel: u64, id: u64) -> Result<&Message, DiscordRefusal> {
        let found = self.messages.get(&channel).and_then(|all| all.get(&id));
        found.ok_or_else(|| DiscordErrorCode::UnknownMessage.into())
    }
}

const fn author(actor: Actor) -> u64 {
    match actor {
        Actor::Operator => SOMEBODY,
        Actor::Bot(bot) => bot,
    }
}

/// Which messages to list.
struct MessagePage {
    before: u64,
    after: Option<u64>,
    limit: usize,
}

impl MessagePage {
    fn of(query: &str) -> Result<Self, DiscordRefusal> {
        let mut page = Self { before: u64::MAX, after: None, limit: 50 };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let id = || {
                let message = format!("Value \"{value}\" is not snowflake.");
                snowflake::parse(value).ok_or_else(|| invalid(name, "NUMBER_TYPE_COERCE", message))
            };
            match name {
                "before" => page.before = id()?,
                "after" => page.after = Some(value.parse().map_or_else(|_| id(), Ok)?),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    let message = "int value should be between 1 and 100.".to_owned();
                    page.limit = limit.ok_or_else(|| invalid(name, "NUMBER_TYPE_COERCE", message))?;
                }
                _ => {}
            }
        }
        Ok(page)
    }
}
