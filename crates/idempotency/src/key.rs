//! Parses the key in a request's header: one line of 1 to 255 characters, quoted or not. The
//! allowed characters are configurable. This module does not know whose key it is.

use std::fmt;

use http::HeaderMap;
use http::header::HeaderName;
use sha2::{Digest, Sha256};

/// The header that carries the key.
pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The maximum length of a key, in characters.
const KEY_LEN_MAX: usize = 255;

/// The bytes of a malformed key that a response repeats.
const REPEATED_MAX: usize = 1_024;

/// A well-formed key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// The characters that a key may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyAlphabet {
    /// Letters, digits, `-` and `_`.
    Plain,
    /// Any printable ASCII.
    Printable,
}

/// How the header is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyForm {
    pub(crate) alphabet: KeyAlphabet,
    /// Whether a quoted value is a structured-field string, with any of its characters and with
    /// parameters, which are ignored.
    pub(crate) is_structured: bool,
}

/// The key header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyHeader {
    /// There is no key.
    Absent,
    /// There is a valid key.
    Key(IdempotencyKey),
    /// There is a value that is not a valid key.
    Malformed {
        /// The value as it was sent, several lines joined by a comma.
        as_sent: String,
        /// Whether it would be a valid key if any printable character were allowed.
        is_printable: bool,
        /// Whether there is more than one.
        is_repeated: bool,
    },
}

impl IdempotencyKey {
    /// Parses a key of letters, digits, `-` and `_`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        Self::of(text, KeyAlphabet::Plain)
    }

    /// Parses a key of any printable ASCII characters.
    #[must_use]
    pub fn printable(text: &str) -> Option<Self> {
        Self::of(text, KeyAlphabet::Printable)
    }

    fn of(text: &str, alphabet: KeyAlphabet) -> Option<Self> {
        let is_allowed = |byte: u8| match alphabet {
            KeyAlphabet::Plain => is_plain(byte),
            KeyAlphabet::Printable => is_printable(byte),
        };
        let is_key = (1..=KEY_LEN_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
        is_key.then(|| Self(text.to_owned()))
    }

    /// The text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form of the key for logs: enough to find it again, too little to use it.
    #[must_use]
    pub fn redacted(&self) -> String {
        let hash = Sha256::digest(self.0.as_bytes());
        hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Prints the redacted form, so that no log contains a key.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key(#{})", self.redacted())
    }
}

/// Returns whether the byte is a letter, a digit, `-` or `_`.
pub(crate) const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

const fn is_printable(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}

/// Parses the key in a request's headers.
#[must_use]
pub(crate) fn parse_header(headers: &HeaderMap, form: KeyForm) -> KeyHeader {
    let mut lines = headers.get_all(HEADER).iter();
    let Some(first) = lines.next() else { return KeyHeader::Absent };
    let text = first.to_str().ok().filter(|_| lines.next().is_none());
    if let Some(key) = text.and_then(|text| form.parse_key(text)) {
        return KeyHeader::Key(key);
    }
    let printable = KeyForm { alphabet: KeyAlphabet::Printable, ..form };
    let is_printable = text.is_some_and(|text| printable.parse_key(text).is_some());
    let sent: Vec<_> =
        headers.get_all(HEADER).iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    let is_repeated = sent.len() > 1;
    let mut as_sent = sent.join(", ");
    as_sent.truncate(as_sent.floor_char_boundary(REPEATED_MAX));
    KeyHeader::Malformed { as_sent, is_printable, is_repeated }
}

/// Finds the key of a request, in any form that is allowed.
pub(crate) fn find_key(headers: &HeaderMap) -> Option<IdempotencyKey> {
    match parse_header(headers, KeyForm { alphabet: KeyAlphabet::Printable, is_structured: true }) {
        KeyHeader::Key(key) => Some(key),
        KeyHeader::Absent | KeyHeader::Malformed { .. } => None,
    }
}

impl KeyForm {
    /// The structured form of the header quotes the key; most clients do not. Both are the same
    /// key.
    fn parse_key(self, text: &str) -> Option<IdempotencyKey> {
        match structured_string(text) {
            Some((key, _)) if self.is_structured => IdempotencyKey::printable(&key),
            Some((key, "")) => IdempotencyKey::of(&key, self.alphabet),
            _ => IdempotencyKey::of(text, self.alphabet),
        }
    }
}

/// Splits off the string of a structured field (RFC 8941) and its parameters; `None` when the text
/// is not one.
fn structured_string(text: &str) -> Option<(String, &str)> {
    let mut letters = text.strip_prefix('"')?.char_indices();
    let mut string = String::new();
    let end = loop {
        match letters.next()? {
            (at, '"') => break at + 2,
            (_, '\\') => string.push(letters.next().filter(|(_, letter)| matches!(letter, '"' | '\\'))?.1),
            (_, letter) => string.push(letter),
        }
    };
    let parameters = text.get(end..)?.trim();
    // A comma outside of quotes makes it a list.
    let mut is_quoted = false;
    let is_list = parameters.chars().any(|letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    let is_one = (parameters.is_empty() || parameters.starts_with(';')) && !is_list;
    is_one.then_some((string, parameters))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PLAIN: KeyForm = KeyForm { alphabet: KeyAlphabet::Plain, is_structured: false };
    const PRINTABLE: KeyForm = KeyForm { alphabet: KeyAlphabet::Printable, is_structured: false };
    const IETF: KeyForm = KeyForm { alphabet: KeyAlphabet::Plain, is_structured: true };

    fn asked(lines: &[&[u8]]) -> KeyHeader {
        asked_as(PLAIN, lines)
    }

    fn asked_as(form: KeyForm, lines: &[&[u8]]) -> KeyHeader {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(HEADER, HeaderValue::from_bytes(line).unwrap());
        }
        parse_header(&headers, form)
    }

    fn key(text: &str) -> KeyHeader {
        KeyHeader::Key(IdempotencyKey::new(text).unwrap())
    }

    /// IDM-1, IDM-16: 1 to 255 characters of four kinds; quoted and bare are one key; case matters
    /// (IDM-20).
    #[test]
    fn a_key_is_read_with_and_without_quotes() {
        assert_eq!(asked(&[]), KeyHeader::Absent);
        assert_eq!(asked(&[b"abc"]), key("abc"));
        assert_eq!(asked(&[b"\"abc\""]), key("abc"));
        assert_eq!(asked(&[b"A"]), key("A"));
        assert_ne!(asked(&[b"A"]), asked(&[b"a"]));
        let longest = "k".repeat(KEY_LEN_MAX);
        assert_eq!(asked(&[longest.as_bytes()]), key(&longest));
    }

    /// IDM-1, IDM-16: everything else is rejected, and reported as it was sent.
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
            let KeyHeader::Malformed { as_sent, .. } = asked(&[wrong.as_bytes()]) else { panic!("{wrong}") };
            assert_eq!(as_sent, wrong);
        }
        let as_sent = "abc, abc".to_owned();
        let twice = KeyHeader::Malformed { as_sent, is_printable: false, is_repeated: true };
        assert_eq!(asked(&[b"abc", b"abc"]), twice);
        assert!(matches!(asked(&[b"\xff"]), KeyHeader::Malformed { .. }));
    }

    /// IDM-1: if configured, a key may contain any printable character, and a key that needs that
    /// setting is recognised.
    #[test]
    fn a_printable_key_is_read_where_it_is_chosen() {
        let any = |text: &str| KeyHeader::Key(IdempotencyKey::printable(text).unwrap());
        for text in ["order:7", "a.b", "YWJj+/==", "a b", "a, b", "\"abc", "~"] {
            assert_eq!(asked_as(PRINTABLE, &[text.as_bytes()]), any(text));
            let plain = asked(&[text.as_bytes()]);
            let as_sent = text.to_owned();
            assert_eq!(plain, KeyHeader::Malformed { as_sent, is_printable: true, is_repeated: false });
        }
        assert_eq!(asked_as(PRINTABLE, &[b"\"order:7\""]), any("order:7"), "quoted, the same key");
        let long = "k".repeat(KEY_LEN_MAX + 1);
        for wrong in ["", "\"\"", "é", "a\tb", &long] {
            let KeyHeader::Malformed { is_printable, .. } = asked_as(PRINTABLE, &[wrong.as_bytes()]) else {
                panic!("{wrong}")
            };
            assert!(!is_printable, "{wrong}");
        }
    }

    /// IDM-16: in the other dialect a key is a structured-field string, whose parameters are
    /// ignored.
    #[test]
    fn a_structured_string_is_a_key_with_any_of_its_characters() {
        for (sent, text) in [
            (r#""order:7""#, "order:7"),
            (r#""a\"b\\c, d";v=1; w="x,y""#, r#"a"b\c, d"#),
            (r#""abc" ;v"#, "abc"),
            ("abc", "abc"),
        ] {
            let wanted = KeyHeader::Key(IdempotencyKey::printable(text).unwrap());
            assert_eq!(asked_as(IETF, &[sent.as_bytes()]), wanted, "{sent}");
        }
        for wrong in [r#""a", "b""#, r#""a" b"#, r#""a\b""#, r#""a"#, "\"\"", "order:7", "\"é\""] {
            let wrong = asked_as(IETF, &[wrong.as_bytes()]);
            assert!(matches!(wrong, KeyHeader::Malformed { .. }), "{wrong:?}");
        }
    }

    /// IDM-10: logs do not contain the key.
    #[test]
    fn a_key_is_not_printed() {
        let shown = format!("{:?}", IdempotencyKey::new("order-4711").unwrap());
        assert!(!shown.contains("4711") && shown.starts_with("Key(#"), "{shown}");
    }
}
