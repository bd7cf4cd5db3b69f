//! Steps for categories and channels. A new one is made with everything in one call, because a name or topic that is
//! set afterwards counts against a hidden limit of two in ten minutes.

mod access;

use serde_json::json;

use super::call::Route;
use super::field::{Field, Object};
use super::fingerprint;
use super::matching::{Matches, type_word};
use super::step::Step;
use super::wire::Wire;
use crate::guild::{self, CATEGORY, Guild};
use crate::journal::Journal;
use crate::name;
use crate::template::{Category, Channel, Template};
use crate::{Id, Kind};

/// One for each category.
pub(super) fn categories(
    template: &Template,
    guild: &Guild,
    journal: &Journal,
    matches: &Matches,
) -> Vec<Step> {
    let step = |category: &Category| {
        let live = matches.id(Kind::Category, &category.key).and_then(|id| guild.channel(id));
        let name = name::marked(&template.prefix, &category.name, &category.key);
        let object = Object {
            kind: Kind::Category,
            key: &category.key,
            id: live.map(|live| live.id),
            entry: journal.get(Kind::Category, &category.key),
            fingerprint: fingerprint::category(template, category),
            fixed: vec![("type", Wire::Plain(json!(CATEGORY)))],
            fields: vec![
                named(&name, live),
                access::field(&category.overwrites, live, guild, journal, matches),
            ],
        };
        object.step(Route::ChannelCreate, Route::ChannelEdit)
    };
    template.categories.iter().map(step).collect()
}

/// One for each channel.
pub(super) fn channels(
    template: &Template,
    guild: &Guild,
    journal: &Journal,
    matches: &Matches,
) -> Vec<Step> {
    let step = |channel: &Channel| {
        let live = matches.id(Kind::Channel, &channel.key).and_then(|id| guild.channel(id));
        let mut fields = vec![named(&name::channel(&channel.name, &channel.key), live)];
        fields.extend(settings(channel, live));
        fields.push(parent(channel, live, guild, matches));
        fields.push(access::field(template.overwrites_of(channel), live, guild, journal, matches));
        let object = Object {
            kind: Kind::Channel,
            key: &channel.key,
            id: live.map(|live| live.id),
            entry: journal.get(Kind::Channel, &channel.key),
            fingerprint: fingerprint::channel(template, channel),
            fixed: Vec::new(),
            fields,
        };
        object.step(Route::ChannelCreate, Route::ChannelEdit)
    };
    template.channels.iter().map(step).collect()
}

fn named(name: &str, live: Option<&guild::Channel>) -> Field {
    Field {
        wire: "name",
        label: "name",
        value: Wire::Plain(json!(name)),
        to: format!("{name:?}"),
        from: live.map(|live| format!("{:?}", live.name)),
        usual: false,
    }
}

/// Type, topic, age, slow mode; only what a channel of this type has.
fn settings(channel: &Channel, live: Option<&guild::Channel>) -> Vec<Field> {
    let shape = channel.shape;
    let mut fields = vec![Field {
        wire: "type",
        label: "type",
        value: Wire::Plain(json!(shape.number())),
        to: shape.word().to_owned(),
        from: live.map(|live| type_word(live.kind)),
        usual: false,
    }];
    if shape.has_topic() {
        fields.push(Field {
            wire: "topic",
            label: "topic",
            value: Wire::Plain(if channel.topic.is_empty() { json!(null) } else { json!(channel.topic) }),
            to: format!("{:?}", channel.topic),
            from: live.map(|live| format!("{:?}", live.topic)),
            usual: channel.topic.is_empty(),
        });
    }
    fields.push(Field {
        wire: "nsfw",
        label: "nsfw",
        value: Wire::Plain(json!(channel.nsfw)),
        to: channel.nsfw.to_string(),
        from: live.map(|live| live.nsfw.to_string()),
        usual: !channel.nsfw,
    });
    if shape.has_slow_mode() {
        let seconds = |seconds: u32| format!("{seconds} s");
        fields.push(Field {
            wire: "rate_limit_per_user",
            label: "slow_mode",
            value: Wire::Plain(json!(channel.slow_mode)),
            to: seconds(channel.slow_mode),
            from: live.map(|live| seconds(live.slow_mode)),
            usual: channel.slow_mode == 0,
        });
    }
    fields
}

fn parent(channel: &Channel, live: Option<&guild::Channel>, guild: &Guild, matches: &Matches) -> Field {
    let handle = channel.category.as_ref().map(|key| matches.handle(Kind::Category, key));
    let shown = |id: Option<Id>| match id.map(|id| (id, guild.channel(id))) {
        None => "none".to_owned(),
        Some((id, known)) => known.map_or_else(|| id.to_string(), |known| format!("{:?} ({id})", known.name)),
    };
    let to = match (&handle, &channel.category) {
        (Some(super::Handle::Known(id)), _) => shown(Some(*id)),
        (_, key) => key.as_ref().map_or_else(|| "none".to_owned(), |key| format!("{key} (new)")),
    };
    Field {
        wire: "parent_id",
        label: "category",
        value: handle.map_or(Wire::Plain(json!(null)), Wire::Id),
        to,
        from: live.map(|live| shown(live.parent)),
        usual: channel.category.is_none(),
    }
}
