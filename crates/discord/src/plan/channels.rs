//! Steps for categories and channels. A new one is created with everything in one call, because a
//! name or topic that is set afterwards counts against a hidden limit of two in ten minutes.

mod access;

use serde_json::json;

use super::call::GuildRoute;
use super::field::{DesiredObject, Field};
use super::fingerprint;
use super::matching::{Matches, type_name};
use super::step::PlanStep;
use super::wire::UnresolvedJson;
use crate::guild::{self, CATEGORY, Guild};
use crate::journal::GuildJournal;
use crate::name;
use crate::template::{CategorySpec, ChannelSpec, NameStyle, Template};
use crate::{Id, ObjectKind};

/// Returns a step for each category.
pub(super) fn categories(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    matches: &Matches,
) -> Vec<PlanStep> {
    let step = |category: &CategorySpec| {
        let live = matches.id(ObjectKind::Category, &category.key).and_then(|id| guild.channel(id));
        let name = template.category_name(category);
        let object = DesiredObject {
            kind: ObjectKind::Category,
            key: &category.key,
            id: live.map(|live| live.id),
            entry: journal.get(ObjectKind::Category, &category.key),
            fingerprint: fingerprint::category(template, category),
            fixed: vec![("type", UnresolvedJson::Plain(json!(CATEGORY)))],
            fields: vec![
                named(template.names, &name, live),
                access::field(&category.overwrites, live, guild, journal, matches),
            ],
        };
        object.step(GuildRoute::ChannelCreate, GuildRoute::ChannelEdit)
    };
    template.categories.iter().map(step).collect()
}

/// Returns a step for each channel.
pub(super) fn channels(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    matches: &Matches,
) -> Vec<PlanStep> {
    let step = |channel: &ChannelSpec| {
        let live = matches.id(ObjectKind::Channel, &channel.key).and_then(|id| guild.channel(id));
        let mut fields = vec![named(template.names, &template.channel_name(channel), live)];
        fields.extend(settings(template, channel, live));
        fields.push(parent(channel, live, guild, matches));
        fields.push(access::field(template.overwrites_of(channel), live, guild, journal, matches));
        let object = DesiredObject {
            kind: ObjectKind::Channel,
            key: &channel.key,
            id: live.map(|live| live.id),
            entry: journal.get(ObjectKind::Channel, &channel.key),
            fingerprint: fingerprint::channel(template, channel),
            fixed: Vec::new(),
            fields,
        };
        object.step(GuildRoute::ChannelCreate, GuildRoute::ChannelEdit)
    };
    template.channels.iter().map(step).collect()
}

fn named(style: NameStyle, name: &str, live: Option<&guild::Channel>) -> Field {
    let shown = |name: &str| format!("{:?}", style.shown(name));
    Field {
        wire: "name",
        label: "name",
        value: UnresolvedJson::Plain(json!(name)),
        to: shown(name),
        from: live.map(|live| shown(&live.name)),
        usual: false,
    }
}

/// Returns type, topic, age restriction and slow mode; only those that a channel of this type has.
fn settings(template: &Template, channel: &ChannelSpec, live: Option<&guild::Channel>) -> Vec<Field> {
    let shape = channel.channel_type;
    let mut fields = vec![Field {
        wire: "type",
        label: "type",
        value: UnresolvedJson::Plain(json!(shape.number())),
        to: shape.as_str().to_owned(),
        from: live.map(|live| type_name(live.kind)),
        usual: false,
    }];
    if shape.has_topic() {
        let topic = template.channel_topic(channel);
        let shown = |topic: &str| format!("{:?}", template.names.shown(topic));
        fields.push(Field {
            wire: "topic",
            label: "topic",
            value: UnresolvedJson::Plain(if topic.is_empty() { json!(null) } else { json!(topic) }),
            to: shown(&topic),
            from: live.map(|live| shown(&live.topic)),
            usual: channel.topic.is_empty(),
        });
    }
    fields.push(Field {
        wire: "nsfw",
        label: "nsfw",
        value: UnresolvedJson::Plain(json!(channel.nsfw)),
        to: channel.nsfw.to_string(),
        from: live.map(|live| live.nsfw.to_string()),
        usual: !channel.nsfw,
    });
    if shape.has_slow_mode() {
        let seconds = |seconds: u32| format!("{seconds} s");
        fields.push(Field {
            wire: "rate_limit_per_user",
            label: "slow_mode",
            value: UnresolvedJson::Plain(json!(channel.slow_mode)),
            to: seconds(channel.slow_mode),
            from: live.map(|live| seconds(live.slow_mode)),
            usual: channel.slow_mode == 0,
        });
    }
    fields
}

fn parent(channel: &ChannelSpec, live: Option<&guild::Channel>, guild: &Guild, matches: &Matches) -> Field {
    let handle = channel.category.as_ref().map(|key| matches.handle(ObjectKind::Category, key));
    let shown = |id: Option<Id>| match id.map(|id| (id, guild.channel(id))) {
        None => "none".to_owned(),
        Some((id, known)) => known
            .map_or_else(|| id.to_string(), |known| format!("{:?} ({id})", name::visible_text(&known.name))),
    };
    let to = match (&handle, &channel.category) {
        (Some(super::ObjectRef::Known(id)), _) => shown(Some(*id)),
        (_, key) => key.as_ref().map_or_else(|| "none".to_owned(), |key| format!("{key} (new)")),
    };
    Field {
        wire: "parent_id",
        label: "category",
        value: handle.map_or(UnresolvedJson::Plain(json!(null)), UnresolvedJson::Id),
        to,
        from: live.map(|live| shown(live.parent)),
        usual: channel.category.is_none(),
    }
}
