//! The fingerprint of a desired state: of names, keys and numbers, and of no id, so that one template has the same
//! fingerprints in every guild. The parts and their order are frozen: a change would make every journal a stranger.

use tidegate_core::fingerprint::{Fingerprint, hex};

use crate::Key;
use crate::name;
use crate::template::{Category, Channel, Message, Overwrite, Role, Template, Whom};

fn done(hash: Fingerprint) -> String {
    hex(&hash.finish()[..16])
}

fn flag(hash: Fingerprint, flag: bool) -> Fingerprint {
    hash.part(if flag { b"1" } else { b"0" })
}

/// Of a role.
pub(super) fn role(template: &Template, role: &Role) -> String {
    let hash = Fingerprint::of("discord role")
        .part(name::marked(&template.prefix, &role.name, &role.key).as_bytes())
        .part(role.permissions.0.to_string().as_bytes())
        .part(role.color.to_string().as_bytes());
    done(flag(flag(hash, role.hoist), role.mentionable))
}

/// Of a category.
pub(super) fn category(template: &Template, category: &Category) -> String {
    let hash = Fingerprint::of("discord category")
        .part(name::marked(&template.prefix, &category.name, &category.key).as_bytes());
    done(overwrites(hash, &category.overwrites))
}

/// Of a channel.
pub(super) fn channel(template: &Template, channel: &Channel) -> String {
    let hash = Fingerprint::of("discord channel")
        .part(name::channel(&channel.name, &channel.key).as_bytes())
        .part(channel.shape.number().to_string().as_bytes())
        .part(channel.category.as_ref().map_or("", Key::as_str).as_bytes())
        .part(channel.topic.as_bytes())
        .part(channel.slow_mode.to_string().as_bytes());
    done(overwrites(flag(hash, channel.nsfw), template.overwrites_of(channel)))
}

/// Of a message.
pub(super) fn message(template: &Template, message: &Message) -> String {
    done(
        Fingerprint::of("discord message")
            .part(message.channel.as_str().as_bytes())
            .part(name::marker(&template.prefix, &message.key).as_bytes())
            .part(message.content.as_bytes()),
    )
}

/// Of an order.
pub(super) fn order<'a>(what: &str, keys: impl Iterator<Item = &'a str>) -> String {
    done(keys.fold(Fingerprint::of(what), |hash, key| hash.part(key.as_bytes())))
}

/// In whatever order they are written: they are a set.
fn overwrites(hash: Fingerprint, overwrites: &[Overwrite]) -> Fingerprint {
    let mut sorted: Vec<_> = overwrites.iter().collect();
    sorted.sort_by(|a, b| a.whom.cmp(&b.whom));
    sorted.into_iter().fold(hash, |hash, overwrite| {
        let whom = match &overwrite.whom {
            Whom::Everyone => "@everyone",
            Whom::Role(key) => key.as_str(),
        };
        hash.part(whom.as_bytes())
            .part(overwrite.allow.0.to_string().as_bytes())
            .part(overwrite.deny.0.to_string().as_bytes())
    })
}
