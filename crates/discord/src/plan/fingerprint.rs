//! The fingerprint of a desired state. It covers names, keys and numbers, but no ids, so that one
//! template has the same fingerprints in every guild. The parts and their order are frozen: after a
//! change, no journal entry would match any more.

use tidegate_core::fingerprint::{Fingerprint, hex};

use crate::ObjectKey;
use crate::name;
use crate::template::{
    CategorySpec, ChannelSpec, MessageSpec, OverwriteSpec, OverwriteTarget, RoleSpec, Template,
};

fn finish_hex(hash: Fingerprint) -> String {
    hex(&hash.finish()[..16])
}

fn flag(hash: Fingerprint, flag: bool) -> Fingerprint {
    hash.part(if flag { b"1" } else { b"0" })
}

/// Returns the fingerprint of a role.
pub(super) fn role(template: &Template, role: &RoleSpec) -> String {
    let hash = Fingerprint::of("discord role")
        .part(template.role_name(role).as_bytes())
        .part(role.permissions.0.to_string().as_bytes())
        .part(role.color.to_string().as_bytes());
    finish_hex(flag(flag(hash, role.hoist), role.mentionable))
}

/// Returns the fingerprint of a category.
pub(super) fn category(template: &Template, category: &CategorySpec) -> String {
    let hash = Fingerprint::of("discord category").part(template.category_name(category).as_bytes());
    finish_hex(overwrites(hash, &category.overwrites))
}

/// Returns the fingerprint of a channel.
pub(super) fn channel(template: &Template, channel: &ChannelSpec) -> String {
    let hash = Fingerprint::of("discord channel")
        .part(template.channel_name(channel).as_bytes())
        .part(channel.channel_type.number().to_string().as_bytes())
        .part(channel.category.as_ref().map_or("", ObjectKey::as_str).as_bytes())
        .part(template.channel_topic(channel).as_bytes())
        .part(channel.slow_mode.to_string().as_bytes());
    finish_hex(overwrites(flag(hash, channel.nsfw), template.overwrites_of(channel)))
}

/// Returns the fingerprint of a message.
pub(super) fn message(template: &Template, message: &MessageSpec) -> String {
    finish_hex(
        Fingerprint::of("discord message")
            .part(message.channel.as_str().as_bytes())
            .part(name::message_marker(&template.prefix, &message.key).as_bytes())
            .part(message.content.as_bytes()),
    )
}

/// Returns the fingerprint of an order.
pub(super) fn order<'a>(what: &str, keys: impl Iterator<Item = &'a str>) -> String {
    finish_hex(keys.fold(Fingerprint::of(what), |hash, key| hash.part(key.as_bytes())))
}

/// Adds overwrites, regardless of the order in which they are written: they are a set.
fn overwrites(hash: Fingerprint, overwrites: &[OverwriteSpec]) -> Fingerprint {
    let mut sorted: Vec<_> = overwrites.iter().collect();
    sorted.sort_by(|a, b| a.target.cmp(&b.target));
    sorted.into_iter().fold(hash, |hash, overwrite| {
        let whom = match &overwrite.target {
            OverwriteTarget::Everyone => "@everyone",
            OverwriteTarget::Role(key) => key.as_str(),
        };
        hash.part(whom.as_bytes())
            .part(overwrite.allow.0.to_string().as_bytes())
            .part(overwrite.deny.0.to_string().as_bytes())
    })
}
