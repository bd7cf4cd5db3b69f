//! The key that a template gives to each object. It stays the same when the display name changes,
//! and it is part of the managed name; [`ObjectKind`] is the kind of object it belongs to.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::bounds::KEY_MAX;

/// A key: 1 to 32 of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(String);

impl ObjectKey {
    /// Parses a key; `None` when the text is not one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= KEY_MAX;
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        (fits && plain).then(|| Self(text.to_owned()))
    }

    /// Creates a placeholder for a key that could not be read, so that the rest of a broken
    /// template can be checked. It equals no real key.
    pub(crate) fn unreadable(number: usize) -> Self {
        Self(format!("?{number}"))
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.0.starts_with('?')
    }

    /// Returns the key as written in the template.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form at the end of a channel's name: lower case, and `_` for `-`, because the
    /// key begins after the last `-` of a channel's name.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.to_ascii_lowercase().replace('-', "_")
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The kind of object that a key belongs to. Each kind has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A role.
    Role,
    /// A category: a channel that holds others.
    Category,
    /// Any other channel.
    Channel,
    /// A message of the bot.
    Message,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Role => "role",
            Self::Category => "category",
            Self::Channel => "channel",
            Self::Message => "message",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-13: the characters of a key, and what remains of it in a channel's name.
    #[test]
    fn ops_13_keys_are_plain_and_short() {
        for bad in ["", "a b", "ключ", "a.b", "a/b", "?1", &"k".repeat(33)] {
            assert_eq!(ObjectKey::new(bad), None, "{bad}");
        }
        assert_eq!(ObjectKey::new(&"k".repeat(32)).unwrap().as_str().len(), 32);
        assert_eq!(ObjectKey::new("Staff-Room_2").unwrap().short(), "staff_room_2");
        assert!(ObjectKey::unreadable(1).is_unreadable());
    }
}
