//! Managed names: names that contain a key, so that a process without any other knowledge can find
//! an object again. Roles and categories also contain the prefix. A channel's name has no room for
//! one: its category has it.

mod invisible;
pub mod slug;

use crate::ObjectKey;
use crate::bounds::PREFIX_MAX;

pub use invisible::{has_invisible_marker, invisible_marker, visible_text};

/// Brackets around the prefix and the key. Display names must not contain them.
pub const BRACKETS: [char; 4] = ['〚', '〛', '〔', '〕'];

/// Returns whether a text can be a prefix: 1 to 16 letters, digits, `_` or `-`.
#[must_use]
pub fn is_prefix(text: &str) -> bool {
    let fits = (1..=PREFIX_MAX).contains(&text.chars().count());
    fits && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Normalizes a display name as Discord does: no space at the ends, one space at a time.
#[must_use]
pub fn normalize_display_name(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Builds the name of a role or category: `〚SSO〛 Moderators 〔mods〕`.
#[must_use]
pub fn managed_name(prefix: &str, name: &str, key: &ObjectKey) -> String {
    normalize_display_name(&format!("〚{prefix}〛 {name} 〔{key}〕"))
}

/// The parts of a role's or category's managed name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedName<'a> {
    /// The owner's prefix.
    pub prefix: &'a str,
    /// The display name.
    pub name: &'a str,
    /// The key.
    pub key: ObjectKey,
}

/// Parses the name of a role or category; `None` when it is not managed. Spaces that people added
/// or removed do not matter.
#[must_use]
pub fn parse_managed_name(name: &str) -> Option<ManagedName<'_>> {
    let (prefix, rest) = name.trim().strip_prefix('〚')?.split_once('〛')?;
    let (name, key) = rest.strip_suffix('〕')?.rsplit_once('〔')?;
    let (prefix, key) = (prefix.trim(), ObjectKey::new(key.trim())?);
    is_prefix(prefix).then_some(ManagedName { prefix, name: name.trim(), key })
}

/// Builds the name of a channel: `priemnaya-intake`.
#[must_use]
pub fn managed_channel_name(name: &str, key: &ObjectKey) -> String {
    let slug = slug::slugify(name);
    let slug = if slug.is_empty() { "channel".to_owned() } else { slug };
    format!("{slug}-{}", key.short())
}

/// Returns the short key at the end of a channel's name, whoever created it: a name alone does not
/// prove that it is managed.
#[must_use]
pub fn short_key_of(name: &str) -> Option<&str> {
    let (slug, short) = name.rsplit_once('-')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (!slug.is_empty() && !short.is_empty() && short.bytes().all(plain)).then_some(short)
}

/// Builds the last line of a managed message, small and grey.
#[must_use]
pub fn message_marker(prefix: &str, key: &ObjectKey) -> String {
    format!("-# 〔{prefix}:{key}〕")
}

/// Parses the prefix and key of a managed message.
#[must_use]
pub fn parse_message_marker(content: &str) -> Option<(&str, ObjectKey)> {
    let line = content.trim_end().rsplit('\n').next()?.trim();
    let inner = line.strip_prefix("-#").unwrap_or(line).trim().strip_prefix('〔')?.strip_suffix('〕')?;
    let (prefix, key) = inner.split_once(':')?;
    is_prefix(prefix).then_some(())?;
    Some((prefix, ObjectKey::new(key)?))
}

#[cfg(test)]
mod tests;
