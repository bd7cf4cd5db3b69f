//! A channel of any kind, including categories: its stored fields, how it is read from a body and
//! how it is shown.

use serde_json::{Map, Value, json};

use super::form::Form;
use super::names::{slug, trimmed};
use super::overwrite::{self, Overwrite};

/// A text channel.
pub const TEXT: u64 = 0;
/// A voice channel.
pub const VOICE: u64 = 2;
/// A category.
pub const CATEGORY: u64 = 4;
/// An announcement channel, whose messages others follow.
pub const ANNOUNCEMENT: u64 = 5;
/// A stage channel.
pub const STAGE: u64 = 13;
/// A forum channel.
pub const FORUM: u64 = 15;
/// A media channel.
pub const MEDIA: u64 = 16;

/// The kinds that a guild can have.
pub const KINDS: [u64; 7] = [TEXT, VOICE, CATEGORY, ANNOUNCEMENT, STAGE, FORUM, MEDIA];

/// A field, the kinds that have it, and its default.
type ExtraField = (&'static str, &'static [u64], fn() -> Value);

/// Fields that are stored as received.
const EXTRA: [ExtraField; 14] = [
    ("nsfw", &[TEXT, VOICE, ANNOUNCEMENT, STAGE, FORUM, MEDIA], || json!(false)),
    ("rate_limit_per_user", &[TEXT, VOICE, ANNOUNCEMENT, STAGE, FORUM, MEDIA], || json!(0)),
    ("bitrate", &[VOICE, STAGE], || json!(64_000)),
    ("user_limit", &[VOICE, STAGE], || json!(0)),
    ("rtc_region", &[VOICE, STAGE], || Value::Null),
    ("video_quality_mode", &[VOICE, STAGE], || json!(1)),
    ("default_auto_archive_duration", &[TEXT, ANNOUNCEMENT, FORUM, MEDIA], || json!(4_320)),
    ("default_thread_rate_limit_per_user", &[TEXT, FORUM, MEDIA], || json!(0)),
    ("available_tags", &[FORUM, MEDIA], || json!([])),
    ("default_reaction_emoji", &[FORUM, MEDIA], || Value::Null),
    ("default_sort_order", &[FORUM, MEDIA], || Value::Null),
    ("default_forum_layout", &[FORUM], || json!(0)),
    ("template", &[FORUM, MEDIA], || json!("")),
    ("flags", &KINDS, || json!(0)),
];

/// A channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its id.
    pub id: u64,
    /// Its guild.
    pub guild: u64,
    /// Its kind.
    pub kind: u64,
    /// Its name, normalized.
    pub name: String,
    /// Its topic.
    pub topic: Option<String>,
    /// Its position.
    pub position: u64,
    /// Its category.
    pub parent: Option<u64>,
    /// Its permission overwrites.
    pub overwrites: Vec<Overwrite>,
    /// The last message posted, even if it was deleted.
    pub last_message: Option<u64>,
    extra: Map<String, Value>,
}

/// The fields of a channel in a body.
#[derive(Debug, Default)]
pub struct ChannelDraft {
    /// Its name, normalized.
    pub name: Option<String>,
    /// Its kind.
    pub kind: Option<u64>,
    /// Its topic; `Some(None)` removes it.
    pub topic: Option<Option<String>>,
    /// Its new position.
    pub position: Option<u64>,
    /// Its category; `Some(None)` moves it out of one.
    pub parent: Option<Option<u64>>,
    /// All of its overwrites.
    pub overwrites: Option<Vec<Overwrite>>,
    extra: Map<String, Value>,
}

impl ChannelDraft {
    /// Reads a draft, for a channel of this kind unless the body gives another.
    #[must_use]
    pub fn read(form: &mut Form<'_>, kind: u64) -> Self {
        let asked = form.number("type", 0..=u64::MAX);
        if asked.is_some_and(|asked| !KINDS.contains(&asked)) {
            let known = KINDS.map(|kind| kind.to_string()).join(", ");
            form.add_error("type", "BASE_TYPE_CHOICES", format!("Value must be one of ({known})."));
        }
        let kind = asked.unwrap_or(kind);
        let topic_max = if matches!(kind, FORUM | MEDIA) { 4_096 } else { 1_024 };
        let topic = form.short_text("topic", topic_max).map(str::to_owned);
        let parent = form.id("parent_id");
        form.number("rate_limit_per_user", 0..=21_600);
        form.number("bitrate", 8_000..=96_000);
        form.number("user_limit", 0..=if kind == STAGE { 10_000 } else { 99 });
        form.flag("nsfw");
        form.list("available_tags", 20, |tag| tag.name("name", trimmed));
        let mut extra = Map::new();
        for (field, kinds, before) in EXTRA {
            if kinds.contains(&kind) && form.has(field) {
                extra.insert(field.to_owned(), form.raw(field).cloned().unwrap_or_else(before));
            }
        }
        Self {
            name: form.name("name", if is_slugged(kind) { slug } else { trimmed }),
            kind: asked,
            topic: form.has("topic").then_some(topic.filter(|topic| !topic.is_empty())),
            position: form.number("position", 0..=10_000),
            parent: form.has("parent_id").then_some(parent),
            overwrites: overwrite::list(form),
            extra,
        }
    }
}

impl Channel {
    /// Creates an empty channel.
    #[must_use]
    pub fn new(id: u64, guild: u64, kind: u64) -> Self {
        Self {
            id,
            guild,
            kind,
            name: String::new(),
            topic: None,
            position: 0,
            parent: None,
            overwrites: Vec::new(),
            last_message: None,
            extra: Map::new(),
        }
    }

    /// Applies the fields of a draft. A category is never in a category.
    pub fn apply(&mut self, draft: ChannelDraft) {
        self.kind = draft.kind.unwrap_or(self.kind);
        self.name = draft.name.unwrap_or(std::mem::take(&mut self.name));
        self.topic = draft.topic.unwrap_or(self.topic.take());
        self.position = draft.position.unwrap_or(self.position);
        self.parent = draft.parent.unwrap_or(self.parent).filter(|_| self.kind != CATEGORY);
        self.overwrites = draft.overwrites.unwrap_or(std::mem::take(&mut self.overwrites));
        self.extra.extend(draft.extra);
    }

    /// Returns whether a draft changes what the hidden limit counts.
    #[must_use]
    pub fn is_renamed_by(&self, draft: &ChannelDraft) -> bool {
        let name = draft.name.as_ref().is_some_and(|name| *name != self.name);
        name || draft.topic.as_ref().is_some_and(|topic| *topic != self.topic)
    }

    /// Returns whether messages can be posted in it.
    #[must_use]
    pub const fn takes_messages(&self) -> bool {
        matches!(self.kind, TEXT | ANNOUNCEMENT | VOICE | STAGE)
    }

    /// Returns it as the API shows it.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut shown = json!({
            "id": self.id.to_string(),
            "type": self.kind,
            "guild_id": self.guild.to_string(),
            "name": self.name,
            "position": self.position,
            "parent_id": self.parent.map(|parent| parent.to_string()),
            "permission_overwrites": self.overwrites.iter().map(Overwrite::json).collect::<Vec<_>>(),
        });
        if self.kind != CATEGORY {
            shown["last_message_id"] = json!(self.last_message.map(|id| id.to_string()));
        }
        if !matches!(self.kind, CATEGORY | VOICE) {
            shown["topic"] = json!(self.topic);
        }
        for (field, _, before) in EXTRA.iter().filter(|(_, kinds, _)| kinds.contains(&self.kind)) {
            shown[field] = self.extra.get(*field).cloned().unwrap_or_else(before);
        }
        shown
    }
}

/// Returns whether names of this kind lose their spaces and capitals.
#[must_use]
pub const fn is_slugged(kind: u64) -> bool {
    matches!(kind, TEXT | ANNOUNCEMENT)
}

/// Returns the group that is sorted together: categories, text kinds, voice kinds.
#[must_use]
pub const fn sort_group(kind: u64) -> u8 {
    match kind {
        CATEGORY => 0,
        VOICE | STAGE => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: u64, body: &Value) -> Channel {
        let mut form = Form::of(body);
        let mut channel = Channel::new(9, 1, kind);
        channel.apply(ChannelDraft::read(&mut form, kind));
        form.finish().unwrap();
        channel
    }

    /// The exact JSON of channels.
    #[test]
    fn channels_are_shown_as_documented() {
        let text =
            made(TEXT, &json!({"name": "Front Desk", "topic": "hello", "parent_id": "4", "nsfw": null}));
        assert_eq!(
            text.json().to_string(),
            concat!(
                r#"{"default_auto_archive_duration":4320,"default_thread_rate_limit_per_user":0,"flags":0,"guild_id":"1","id":"9","#,
                r#""last_message_id":null,"name":"front-desk","nsfw":false,"parent_id":"4","permission_overwrites":[],"#,
                r#""position":0,"rate_limit_per_user":0,"topic":"hello","type":0}"#
            )
        );
        let category = made(CATEGORY, &json!({"name": " Front Desk ", "topic": "x", "parent_id": "4"}));
        assert_eq!(
            category.json().to_string(),
            concat!(
                r#"{"flags":0,"guild_id":"1","id":"9","name":"Front Desk","parent_id":null,"permission_overwrites":[],"#,
                r#""position":0,"type":4}"#
            )
        );
        let voice =
            made(VOICE, &json!({"name": "Talk", "bitrate": 8_000, "user_limit": 5, "topic": "x"})).json();
        assert_eq!(
            (&voice["bitrate"], &voice["user_limit"], voice.get("topic")),
            (&json!(8_000), &json!(5), None)
        );
    }

    #[test]
    fn a_rename_is_a_name_or_topic_that_differs() {
        let channel = made(TEXT, &json!({"name": "a b", "topic": "t"}));
        let renamed = |body: Value| channel.is_renamed_by(&ChannelDraft::read(&mut Form::of(&body), TEXT));
        assert!(!renamed(json!({"name": "A b", "topic": "t"})) && !renamed(json!({"nsfw": true})));
        assert!(renamed(json!({"name": "c"})) && renamed(json!({"topic": null})));
    }
}
