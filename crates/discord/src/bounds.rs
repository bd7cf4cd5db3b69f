//! Discord's bounds that a template can exceed. Discord documents each figure, except where the
//! comment says otherwise: those were observed by many.

/// Roles per guild, including @everyone.
pub(crate) const ROLES_MAX: usize = 250;
/// Channels per guild, including categories.
pub(crate) const CHANNELS_MAX: usize = 500;
/// Channels per category.
pub(crate) const CHANNELS_PER_CATEGORY_MAX: usize = 50;
/// Characters in the name of a role or channel, including everything that marks it as managed.
pub(crate) const NAME_MAX: usize = 100;
/// Characters in a topic.
pub(crate) const TOPIC_MAX: usize = 1_024;
/// Characters in a forum's topic, which Discord shows as its guidelines.
pub(crate) const FORUM_TOPIC_MAX: usize = 4_096;
/// Overwrites in one request, and so on one channel of a template.
pub(crate) const OVERWRITES_MAX: usize = 100;
/// Characters in a message, including the marker.
pub(crate) const MESSAGE_MAX: usize = 2_000;
/// The longest slow mode, in seconds.
pub(crate) const SLOW_MODE_MAX: u32 = 21_600;
/// Role creates per guild in [`ROLE_CREATES_PER`] seconds. Not documented.
pub(crate) const ROLE_CREATES_MAX: u32 = 250;
/// See [`ROLE_CREATES_MAX`].
pub(crate) const ROLE_CREATES_PER: u64 = 48 * 3_600;
/// Edits of a channel's name or topic in [`RENAMES_PER`] seconds. Not documented.
pub(crate) const RENAMES_MAX: u32 = 2;
/// See [`RENAMES_MAX`].
pub(crate) const RENAMES_PER: u64 = 600;

/// Characters in a key. Our own bound: a key is part of a name and must leave room for it.
pub(crate) const KEY_MAX: usize = 32;
/// Characters in a prefix. Also our own bound.
pub(crate) const PREFIX_MAX: usize = 16;

/// Returns the length of a text by Discord's strictest count: characters beyond the first plane
/// count as two.
#[must_use]
pub(crate) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}
