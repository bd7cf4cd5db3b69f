//! Invisible markers, for objects whose names carry no key. A marker is a short hash in characters
//! without width, at the end of a name or topic. It is a hint: a server that drops it costs
//! nothing, because texts are compared without it.

use tidegate_core::fingerprint::Fingerprint;

use crate::{ObjectKey, ObjectKind};

/// The character that a marker begins with.
const OPENING: char = '\u{2060}';
/// The digits of a marker, two bits each.
const DIGITS: [char; 4] = ['\u{200b}', '\u{2061}', '\u{2062}', '\u{2063}'];
/// The bytes of the hash in a marker.
const HASH_LEN: usize = 4;

/// Builds the marker of an object, which shows nothing.
#[must_use]
pub fn invisible_marker(prefix: &str, kind: ObjectKind, key: &ObjectKey) -> String {
    let hash = Fingerprint::of("discord marker").part(prefix.as_bytes()).part(kind.to_string().as_bytes());
    let hash = hash.part(key.as_str().as_bytes()).finish();
    let digits = |byte: &u8| [byte >> 6, byte >> 4 & 3, byte >> 2 & 3, byte & 3];
    let digits = hash[..HASH_LEN].iter().flat_map(digits).filter_map(|digit| DIGITS.get(usize::from(digit)));
    std::iter::once(&OPENING).chain(digits).collect()
}

/// Returns whether a text has any marker.
#[must_use]
pub fn has_invisible_marker(text: &str) -> bool {
    text.contains(OPENING)
}

/// Returns what people see of a text: it without markers, also without what a server left of them.
#[must_use]
pub fn visible_text(text: &str) -> String {
    text.chars().filter(|c| *c != OPENING && !DIGITS.contains(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-13: a marker shows nothing, fits behind a name, and differs between prefixes, kinds and
    /// keys.
    #[test]
    fn ops_13_markers_are_invisible_and_differ() {
        let key = |text: &str| ObjectKey::new(text).unwrap();
        let desk = invisible_marker("SSO", ObjectKind::Role, &key("desk"));
        assert_eq!(desk.chars().count(), 17);
        let name = format!("Front desk{desk}");
        assert!(has_invisible_marker(&name) && name.ends_with(&desk));
        assert_eq!(visible_text(&name), "Front desk");
        assert_eq!(name.trim(), name, "spaces at the end are trimmed, these are none");
        assert_ne!(desk, invisible_marker("X", ObjectKind::Role, &key("desk")));
        assert_ne!(desk, invisible_marker("SSO", ObjectKind::Category, &key("desk")));
        assert_ne!(desk, invisible_marker("SSO", ObjectKind::Role, &key("desc")));
    }
}
