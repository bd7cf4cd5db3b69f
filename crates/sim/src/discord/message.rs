//! A message: its stored fields, how it is read from a body and how it is shown.

use serde_json::{Value, json};
use tidegate_core::Time;

use super::form::Form;
use super::snowflake::timestamp;

/// Longest content, in characters.
const CONTENT_LEN_MAX: usize = 2_000;
/// Longest nonce.
const NONCE_LEN_MAX: usize = 25;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: u64,
    /// Its channel.
    pub channel: u64,
    /// Its author.
    pub author: u64,
    /// Its text.
    pub content: String,
    /// Its embeds.
    pub embeds: Value,
    components: Value,
    flags: u64,
    nonce: Option<Value>,
    at: Time,
    edited: Option<Time>,
}

/// The fields of a message in a body.
#[derive(Debug)]
pub struct MessageDraft {
    content: Option<String>,
    embeds: Option<Value>,
    components: Option<Value>,
    flags: Option<u64>,
    /// The caller's nonce.
    pub nonce: Option<Value>,
    /// Whether there may be only one message with that nonce.
    pub enforced: bool,
}

impl MessageDraft {
    /// Reads a draft.
    #[must_use]
    pub fn read(form: &mut Form<'_>) -> Self {
        let nonce = form.raw("nonce").cloned();
        let fits = match &nonce {
            Some(Value::String(nonce)) => nonce.chars().count() <= NONCE_LEN_MAX,
            Some(nonce) => nonce.is_i64() || nonce.is_u64(),
            None => true,
        };
        if !fits {
            let message = format!("Must be {NONCE_LEN_MAX} or fewer in length.");
            form.add_error("nonce", "BASE_TYPE_MAX_LENGTH", message);
        }
        form.list("embeds", 10, |_| Some(()));
        let content = form.short_text("content", CONTENT_LEN_MAX).map(str::to_owned);
        Self {
            content: form.has("content").then(|| content.unwrap_or_default()),
            embeds: form.has("embeds").then(|| form.raw("embeds").cloned().unwrap_or(json!([]))),
            components: form.has("components").then(|| form.raw("components").cloned().unwrap_or(json!([]))),
            flags: form.number("flags", 0..=u64::from(u32::MAX)),
            nonce,
            enforced: form.flag("enforce_nonce").unwrap_or(false),
        }
    }
}

impl Message {
    /// Creates an empty message.
    #[must_use]
    pub fn new(id: u64, channel: u64, author: u64, at: Time) -> Self {
        Self {
            id,
            channel,
            author,
            content: String::new(),
            embeds: json!([]),
            components: json!([]),
            flags: 0,
            nonce: None,
            at,
            edited: None,
        }
    }

    /// Applies the fields of a draft; `edited` is shown as the time of the edit.
    pub fn apply(&mut self, draft: MessageDraft, edited: Option<Time>) {
        self.content = draft.content.unwrap_or(std::mem::take(&mut self.content));
        self.embeds = draft.embeds.unwrap_or(self.embeds.take());
        self.components = draft.components.unwrap_or(self.components.take());
        self.flags = draft.flags.unwrap_or(self.flags);
        self.nonce = self.nonce.take().or(draft.nonce.filter(|_| edited.is_none()));
        self.edited = edited.or(self.edited);
    }

    /// Returns whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        self.content.trim().is_empty() && none(&self.embeds) && none(&self.components)
    }

    /// Returns it as the API shows it, with its author.
    #[must_use]
    pub fn json(&self, author: &Value) -> Value {
        let mut shown = json!({
            "id": self.id.to_string(),
            "type": 0,
            "channel_id": self.channel.to_string(),
            "author": author,
            "content": self.content,
            "timestamp": timestamp(self.at),
            "edited_timestamp": self.edited.map(timestamp),
            "tts": false,
            "mention_everyone": false,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": self.embeds,
            "components": self.components,
            "pinned": false,
            "flags": self.flags,
        });
        if let Some(nonce) = &self.nonce {
            shown["nonce"] = nonce.clone();
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact JSON of a message.
    #[test]
    fn a_message_is_shown_as_documented() {
        let at = Time::from_millis(1_798_761_599_000);
        let body = json!({"content": "hi", "nonce": "n"});
        let mut form = Form::of(&body);
        let mut message = Message::new(9, 8, 7, at);
        assert!(message.is_empty());
        message.apply(MessageDraft::read(&mut form), None);
        form.finish().unwrap();
        assert_eq!(
            message.json(&json!("author")).to_string(),
            concat!(
                r#"{"attachments":[],"author":"author","channel_id":"8","components":[],"content":"hi","edited_timestamp":null,"#,
                r#""embeds":[],"flags":0,"id":"9","mention_everyone":false,"mention_roles":[],"mentions":[],"nonce":"n","#,
                r#""pinned":false,"timestamp":"2026-12-31T23:59:59.000000+00:00","tts":false,"type":0}"#
            )
        );
        for body in
            [json!({"nonce": "x".repeat(26)}), json!({"content": "x".repeat(2_001)}), json!({"nonce": 1.5})]
        {
            let mut form = Form::of(&body);
            let _ = MessageDraft::read(&mut form);
            assert!(form.finish().is_err(), "{body}");
        }
    }
}
