//! The key as it comes in a request's header: one line, 1 to 255 characters of `[A-Za-z0-9_-]`, in quotes or not.
//! Whose key it is, is not known here.

use std::fmt;

use http::HeaderMap;
use http::header::HeaderName;
use sha2::{Digest, Sha256};

/// The header that carries the key.
pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Characters of the longest key.
pub const KEY_LEN_MAX: usize = 255;

/// Bytes of a malformed key that an answer repeats.
const REPEATED_MAX: usize = 1_024;

/// A key of the right form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

/// What the headers of a request say about its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// There is none.
    Nothing,
    /// There is one.
    Key(Key),
    /// There is something that is none.
    Malformed {
        /// As it was sent, several lines joined by a comma.
        as_sent: String,
    },
}

impl Key {
    /// A key, if the text has its form.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_key = (1..=KEY_LEN_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        is_key.then(|| Self(text.to_owned()))
    }

    /// The key itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What logs may hold of it: enough to find it again, too little to use it.
    #[must_use]
    pub fn shadow(&self) -> String {
        let hash = Sha256::digest(self.0.as_bytes());
        hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A log that prints a key prints its shadow.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key(#{})", self.shadow())
    }
}

/// Reads the key out of a request's headers.
#[must_use]
pub(crate) fn read(headers: &HeaderMap) -> Asked {
    let mut lines = headers.get_all(HEADER).iter();
    let Some(first) = lines.next() else { return Asked::Nothing };
    if lines.next().is_none()
        && let Some(key) = first.to_str().ok().and_then(unquoted).and_then(Key::new)
    {
        return Asked::Key(key);
    }
    let sent: Vec<_> =
        headers.get_all(HEADER).iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    let mut as_sent = sent.join(", ");
    as_sent.truncate(as_sent.floor_char_boundary(REPEATED_MAX));
    Asked::Malformed { as_sent }
}

/// The structured form of the header puts the key in quotes; most clients do not. Both are the same key.
fn unquoted(text: &str) -> Option<&str> {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asked(lines: &[&[u8]]) -> Asked {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(HEADER, HeaderValue::from_bytes(line).unwrap());
        }
        read(&headers)
    }

    fn key(text: &str) -> Asked {
        Asked::Key(Key::new(text).unwrap())
    }

    /// IDM-1, IDM-16: 1 to 255 characters of four kinds; quoted and bare are one key; case matters (IDM-20).
    #[test]
    fn a_key_is_read_with_and_without_quotes() {
        assert_eq!(asked(&[]), Asked::Nothing);
        assert_eq!(asked(&[b"abc"]), key("abc"));
        assert_eq!(asked(&[b"\"abc\""]), key("abc"));
        assert_eq!(asked(&[b"A"]), key("A"));
        assert_ne!(asked(&[b"A"]), asked(&[b"a"]));
        let longest = "k".repeat(KEY_LEN_MAX);
        assert_eq!(asked(&[longest.as_bytes()]), key(&longest));
    }

    /// IDM-1, IDM-16: everything else is refused, and said as it was sent.
    #[test]
    fn what_is_no_key_is_told_as_it_was_sent() {
        let too_long = "k".repeat(KEY_LEN_MAX + 1);
        for wrong in [
            "",
            "\"\"",
            "a.b",
            "a b",
            "abc, def",
            "\"abc\";v=1",
            "\"abc",
            "abc\"",
            "é",
            "\"",
            too_long.as_str(),
        ] {
            assert_eq!(asked(&[wrong.as_bytes()]), Asked::Malformed { as_sent: wrong.to_owned() });
        }
        assert_eq!(asked(&[b"abc", b"abc"]), Asked::Malformed { as_sent: "abc, abc".to_owned() });
        assert!(matches!(asked(&[b"\xff"]), Asked::Malformed { .. }));
    }

    /// IDM-10: what a log prints of a key is not the key.
    #[test]
    fn a_key_is_not_printed() {
        let shown = format!("{:?}", Key::new("order-4711").unwrap());
        assert!(!shown.contains("4711") && shown.starts_with("Key(#"), "{shown}");
    }
}
