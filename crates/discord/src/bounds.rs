//! What Discord allows, as far as a template can break it. Figures without a word about them are documented by
//! Discord; the others were seen by many and are told as such.

/// Roles of a guild, @everyone counted.
pub const ROLES_MAX: usize = 250;
/// Channels of a guild, categories counted.
pub const CHANNELS_MAX: usize = 500;
/// Channels in one category.
pub const CHANNELS_PER_CATEGORY_MAX: usize = 50;
/// Characters of a role's or channel's name, with everything that marks it as managed.
pub const NAME_MAX: usize = 100;
/// Characters of a topic.
pub const TOPIC_MAX: usize = 1_024;
/// Characters of a forum's topic, which it shows as its guidelines.
pub const FORUM_TOPIC_MAX: usize = 4_096;
/// Overwrites in one request, and so on one channel of a template.
pub const OVERWRITES_MAX: usize = 100;
/// Characters of a message, with the marker.
pub const MESSAGE_MAX: usize = 2_000;
/// The longest slow mode, in seconds.
pub const SLOW_MODE_MAX: u32 = 21_600;
/// Role creates of a guild in [`ROLE_CREATES_PER`] seconds. Not documented.
pub const ROLE_CREATES_MAX: u32 = 250;
/// See [`ROLE_CREATES_MAX`].
pub const ROLE_CREATES_PER: u64 = 48 * 3_600;
/// Edits of a channel's name or topic in [`RENAMES_PER`] seconds. Not documented.
pub const RENAMES_MAX: u32 = 2;
/// See [`RENAMES_MAX`].
pub const RENAMES_PER: u64 = 600;

/// Characters of a key. Ours: a key is part of a name and must leave room for it.
pub const KEY_MAX: usize = 32;
/// Characters of a prefix. Ours too.
pub const PREFIX_MAX: usize = 16;

/// How long a text is for Discord, by the strictest way to count: what lies beyond the first plane counts as two.
#[must_use]
pub fn length(text: &str) -> usize {
    text.encode_utf16().count()
}
