//! One token of a subject as text. ASCII letters, digits and `-` stand for themselves, `_` too
//! except in front; every other byte is `%` and two upper-case hex digits, and an empty token is a
//! lone `%`. So a token never contains a separator, wildcard, glob character or white space of any
//! bus, and never starts like a name that a server reserves (`$SYS`, `_INBOX`).

/// The encoding of the empty token.
const EMPTY: &str = "%";

const fn is_plain(byte: u8, is_first: bool) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || (byte == b'_' && !is_first)
}

/// Appends the encoding of a token.
pub(crate) fn encode(token: &str, into: &mut String) {
    if token.is_empty() {
        into.push_str(EMPTY);
    }
    for (at, byte) in token.bytes().enumerate() {
        if is_plain(byte, at == 0) {
            into.push(char::from(byte));
        } else {
            into.push('%');
            into.push(hex_digit(byte >> 4));
            into.push(hex_digit(byte & 15));
        }
    }
}

/// Decodes a token. `None` for text that [`encode`] does not write, so that no two texts are the
/// same token.
pub(crate) fn decode(text: &str) -> Option<String> {
    if text == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let is_first = bytes.is_empty();
        let (byte, after) = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let byte = hex_value(*high)? << 4 | hex_value(*low)?;
                (Some(byte).filter(|byte| !is_plain(*byte, is_first))?, after)
            }
            (plain, after) => (Some(*plain).filter(|byte| is_plain(*byte, is_first))?, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|token| !token.is_empty())
}

fn hex_digit(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'A' + value - 10 })
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode, encode};

    fn encoded(token: &str) -> String {
        let mut text = String::new();
        encode(token, &mut text);
        text
    }

    #[test]
    fn tokens_are_readable_where_they_can_be() {
        assert_eq!(encoded("order_line-7"), "order_line-7");
        assert_eq!(encoded("a.b"), "a%2Eb");
        assert_eq!(encoded("ä"), "%C3%A4");
        assert_eq!(encoded("_INBOX"), "%5FINBOX");
        assert_eq!(encoded("$SYS"), "%24SYS");
        assert_eq!(encoded(""), "%");
    }

    #[test]
    fn text_that_is_never_written_is_refused() {
        for text in ["", "a.b", "*", ">", "a b", "%2", "%2e", "%41", "%zz", "%FF", "_x", "%%", "ä", "a%"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        /// HYD-27: whatever an id contains, its token has no character with a meaning to a bus.
        #[test]
        fn any_token_comes_back_and_breaks_nothing(token in any::<String>()) {
            let text = encoded(&token);
            prop_assert!(!text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_%".contains(&b)));
            prop_assert!(!text.starts_with(['_', '$']));
            prop_assert_eq!(decode(&text), Some(token));
        }

        #[test]
        fn text_has_one_reading(text in "[A-Ca-c0-9_%.]{0,6}") {
            if let Some(token) = decode(&text) {
                prop_assert_eq!(encoded(&token), text);
            }
        }
    }
}
