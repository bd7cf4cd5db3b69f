//! Managed names: a name that carries its key, so that an object can be found again by a process that knows nothing
//! of it. Roles and categories also carry the prefix. A channel's name has no room for one: its category has it.

pub mod slug;

use crate::ObjectKey;
use crate::bounds::PREFIX_MAX;

/// Brackets around the prefix and around the key. Display names must not have them.
pub const BRACKETS: [char; 4] = ['〚', '〛', '〔', '〕'];

/// Whether a text can be a prefix: 1 to 16 letters, digits, `_` or `-`.
#[must_use]
pub fn is_prefix(text: &str) -> bool {
    let fits = (1..=PREFIX_MAX).contains(&text.chars().count());
    fits && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// A display name as Discord keeps it: no space at the ends, one space at a time.
#[must_use]
pub fn normalize_display_name(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The name of a role or category: `〚SSO〛 Moderators 〔mods〕`.
#[must_use]
pub fn managed_name(prefix: &str, name: &str, key: &ObjectKey) -> String {
    normalize_display_name(&format!("〚{prefix}〛 {name} 〔{key}〕"))
}

/// What a role's or category's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedName<'a> {
    /// Whose it is.
    pub prefix: &'a str,
    /// What people see.
    pub name: &'a str,
    /// Which it is.
    pub key: ObjectKey,
}

/// Reads the name of a role or category back; `None` for one that is not managed. Spaces that people added or took
/// away do not matter.
#[must_use]
pub fn parse_managed_name(name: &str) -> Option<ManagedName<'_>> {
    let (prefix, rest) = name.trim().strip_prefix('〚')?.split_once('〛')?;
    let (name, key) = rest.strip_suffix('〕')?.rsplit_once('〔')?;
    let (prefix, key) = (prefix.trim(), ObjectKey::new(key.trim())?);
    is_prefix(prefix).then_some(ManagedName { prefix, name: name.trim(), key })
}

/// The name of a channel: `priemnaya-intake`.
#[must_use]
pub fn managed_channel_name(name: &str, key: &ObjectKey) -> String {
    let slug = slug::slugify(name);
    let slug = if slug.is_empty() { "channel".to_owned() } else { slug };
    format!("{slug}-{}", key.short())
}

/// The short key at the end of a channel's name, whoever made it: a name alone does not say that it is managed.
#[must_use]
pub fn short_key_of(name: &str) -> Option<&str> {
    let (slug, short) = name.rsplit_once('-')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (!slug.is_empty() && !short.is_empty() && short.bytes().all(plain)).then_some(short)
}

/// The last line of a managed message, small and grey.
#[must_use]
pub fn message_marker(prefix: &str, key: &ObjectKey) -> String {
    format!("-# 〔{prefix}:{key}〕")
}

/// Prefix and key of a managed message.
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
