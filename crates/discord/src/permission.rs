//! Permissions by the names in Discord's documentation. A set is what the wire has: a number in
//! quotes. Bits without a name here are kept and shown as a number.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Names and bits.
pub const NAMES: [(&str, u8); 51] = [
    ("CREATE_INSTANT_INVITE", 0),
    ("KICK_MEMBERS", 1),
    ("BAN_MEMBERS", 2),
    ("ADMINISTRATOR", 3),
    ("MANAGE_CHANNELS", 4),
    ("MANAGE_GUILD", 5),
    ("ADD_REACTIONS", 6),
    ("VIEW_AUDIT_LOG", 7),
    ("PRIORITY_SPEAKER", 8),
    ("STREAM", 9),
    ("VIEW_CHANNEL", 10),
    ("SEND_MESSAGES", 11),
    ("SEND_TTS_MESSAGES", 12),
    ("MANAGE_MESSAGES", 13),
    ("EMBED_LINKS", 14),
    ("ATTACH_FILES", 15),
    ("READ_MESSAGE_HISTORY", 16),
    ("MENTION_EVERYONE", 17),
    ("USE_EXTERNAL_EMOJIS", 18),
    ("VIEW_GUILD_INSIGHTS", 19),
    ("CONNECT", 20),
    ("SPEAK", 21),
    ("MUTE_MEMBERS", 22),
    ("DEAFEN_MEMBERS", 23),
    ("MOVE_MEMBERS", 24),
    ("USE_VAD", 25),
    ("CHANGE_NICKNAME", 26),
    ("MANAGE_NICKNAMES", 27),
    ("MANAGE_ROLES", 28),
    ("MANAGE_WEBHOOKS", 29),
    ("MANAGE_GUILD_EXPRESSIONS", 30),
    ("USE_APPLICATION_COMMANDS", 31),
    ("REQUEST_TO_SPEAK", 32),
    ("MANAGE_EVENTS", 33),
    ("MANAGE_THREADS", 34),
    ("CREATE_PUBLIC_THREADS", 35),
    ("CREATE_PRIVATE_THREADS", 36),
    ("USE_EXTERNAL_STICKERS", 37),
    ("SEND_MESSAGES_IN_THREADS", 38),
    ("USE_EMBEDDED_ACTIVITIES", 39),
    ("MODERATE_MEMBERS", 40),
    ("VIEW_CREATOR_MONETIZATION_ANALYTICS", 41),
    ("USE_SOUNDBOARD", 42),
    ("CREATE_GUILD_EXPRESSIONS", 43),
    ("CREATE_EVENTS", 44),
    ("USE_EXTERNAL_SOUNDS", 45),
    ("SEND_VOICE_MESSAGES", 46),
    ("SEND_POLLS", 49),
    ("USE_EXTERNAL_APPS", 50),
    ("PIN_MESSAGES", 51),
    ("BYPASS_SLOWMODE", 52),
];

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permissions(pub u64);

impl Permissions {
    /// Returns the permission with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, bit)| Self(1 << bit))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the permissions in this set that are not in the other.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the names, by bit; unnamed bits as one number at the end.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let has = |bit: u8| self.0 & (1 << bit) != 0;
        let mut found: Vec<String> =
            NAMES.iter().filter(|(_, bit)| has(*bit)).map(|(name, _)| (*name).to_owned()).collect();
        let named = NAMES.iter().fold(0, |all: u64, (_, bit)| all | (1 << bit));
        if self.0 & !named != 0 {
            found.push(format!("{:#x}", self.0 & !named));
        }
        found
    }
}

/// Returns the known name that a wrong one was probably meant to be.
#[must_use]
pub fn suggest_name(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_uppercase().replace(['-', ' '], "_");
    let near = NAMES.iter().map(|(known, _)| (strsim::jaro_winkler(&name, known), *known));
    near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.8).map(|(_, known)| known)
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str("none") } else { f.write_str(&self.names().join(", ")) }
    }
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| de::Error::custom("permissions are a number in quotes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-19: every name has the bit that other libraries give it; where a library uses another
    /// word, the bit decides.
    #[test]
    fn ops_19_permissions_agree_with_what_others_know() {
        let theirs = twilight_model::guild::Permissions::all().bits();
        let ours = NAMES.iter().fold(0, |all, (name, _)| all | Permissions::named(name).unwrap().0);
        assert_eq!(ours, theirs, "a bit without a name here, or one that the library does not know");
        for (name, bits) in twilight_model::guild::Permissions::all().iter_names() {
            if let Some(ours) = Permissions::named(name) {
                assert_eq!(ours.0, bits.bits(), "{name}");
            }
        }
    }

    #[test]
    fn a_wrong_name_finds_the_right_one() {
        assert_eq!(suggest_name("VIEW_CHANNELS"), Some("VIEW_CHANNEL"));
        assert_eq!(suggest_name("send-messages"), Some("SEND_MESSAGES"));
        assert_eq!(suggest_name("MANAGE_MESAGES"), Some("MANAGE_MESSAGES"));
        assert_eq!(suggest_name("xyzzy"), None);
    }

    #[test]
    fn bits_without_a_name_are_shown_and_kept() {
        let set = Permissions((1 << 60) | (1 << 10));
        assert_eq!(set.to_string(), "VIEW_CHANNEL, 0x1000000000000000");
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<Permissions>(&text).unwrap(), set);
        assert_eq!(Permissions::default().to_string(), "none");
    }
}
