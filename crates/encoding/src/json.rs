//! Hashes JSON by value: the order of members, white space, escapes and the spelling of numbers do
//! not count. Numbers are compared exactly, however long they are. The nesting depth of the input
//! is bounded, because it is untrusted.

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The maximum nesting depth of a value.
const DEPTH_MAX: usize = 128;

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// Hashes a JSON text by its value; `None` when it is not JSON, or nested too deeply.
#[must_use]
pub fn hash_by_value(text: &[u8]) -> Option<Hash> {
    // The code below relies on well-formed input.
    serde_json::from_slice::<&RawValue>(text).ok()?;
    JsonWalker { text, at: 0 }.value(DEPTH_MAX)
}

struct JsonWalker<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> JsonWalker<'a> {
    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Consumes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Hash> {
        let depth = depth.checked_sub(1)?;
        Some(match self.peek()? {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => tagged(b's', &self.string()?),
            _ => scalar(self.word()),
        })
    }

    fn object(&mut self, depth: usize) -> Option<Hash> {
        self.at += 1;
        let mut members = Vec::new();
        while !self.take(b'}') {
            self.take(b',');
            self.peek()?;
            let name = self.string()?;
            self.take(b':');
            members.push((tagged(b'k', &name), self.value(depth)?));
        }
        // A stable sort, so that a duplicate name keeps the order of its values.
        members.sort_by_key(|(name, _)| *name);
        Some(tagged(
            b'o',
            members.iter().flat_map(|(name, value)| [*name, *value]).flatten().collect::<Vec<_>>().as_slice(),
        ))
    }

    fn array(&mut self, depth: usize) -> Option<Hash> {
        self.at += 1;
        let mut hash = Sha256::new_with_prefix(b"a");
        while !self.take(b']') {
            self.take(b',');
            hash.update(self.value(depth)?);
        }
        Some(hash.finalize().into())
    }

    /// The text of a string; if it is not valid text, such as half a surrogate pair, its raw form.
    fn string(&mut self) -> Option<Vec<u8>> {
        let from = self.at;
        self.at += 1;
        loop {
            match self.text.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let raw = self.text.get(from..self.at)?;
        Some(serde_json::from_slice::<String>(raw).map_or_else(|_| raw.to_vec(), String::into_bytes))
    }

    fn word(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
        let len = rest.iter().position(is_end).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }
}

fn tagged(tag: u8, content: &[u8]) -> Hash {
    Sha256::new_with_prefix([tag]).chain_update(content).finalize().into()
}

fn scalar(word: &[u8]) -> Hash {
    let number = std::str::from_utf8(word).ok().and_then(plain_number);
    tagged(b'w', number.as_deref().map_or(word, str::as_bytes))
}

/// A number as its digits, without leading or trailing zeros, and a power of ten; `None` when it is
/// not a number.
fn plain_number(word: &str) -> Option<String> {
    let (sign, rest) = word.strip_prefix('-').map_or(("", word), |rest| ("-", rest));
    let (digits, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let mut power = power.parse::<i64>().ok()?.checked_sub(fraction.len() as i64)?;
    let trimmed = digits.trim_end_matches('0');
    power = power.checked_add((digits.len() - trimmed.len()) as i64)?;
    match trimmed.trim_start_matches('0') {
        "" if digits.is_empty() => None,
        "" => Some("0".to_owned()),
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(format!("{sign}{digits}e{power}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let hash = |text: &str| hash_by_value(text.as_bytes()).unwrap();
        hash(one) == hash(other)
    }

    /// IDM-2, OPS-7: the spelling of a value does not count.
    #[test]
    fn idm_2_ops_7_one_value_has_one_hash() {
        assert!(same(r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true ,null ],\r\n\t\"a\":1 }"));
        assert!(same(r#""\u0041é\/""#, r#""Aé/""#));
        for number in ["100", "1e2", "1.00E+2", "1000e-1"] {
            assert!(same(number, "100.0"), "{number}");
        }
        assert!(same("-0.0", "0") && same("{}", " { } ") && same("[]", "[ ]"));
    }

    /// IDM-2, OPS-7: two values have two hashes, however close they are.
    #[test]
    fn idm_2_ops_7_two_values_have_two_hashes() {
        for (one, other) in [
            ("1", "-1"),
            ("1", "\"1\""),
            ("10", "1"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("0.1", "0.10000000000000000001"),
            ("9007199254740993", "9007199254740992"),
            ("1e999999999999999999999", "1e999999999999999999998"),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1}"#, r#"{"A":1}"#),
            ("null", "false"),
            ("[1,2]", "[2,1]"),
            ("[[],[]]", "[[[]]]"),
            ("{}", "[]"),
            ("null", "\"null\""),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#""\ud800""#, r#""\ud801""#),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_value() {
        for text in ["", "{", "{}x", "{'a':1}", "01", "\u{feff}{}"] {
            assert_eq!(hash_by_value(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(hash_by_value(b"\"\xff\""), None);
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(hash_by_value(deep(DEPTH_MAX).as_bytes()).is_some());
        assert_eq!(hash_by_value(deep(DEPTH_MAX + 1).as_bytes()), None);
        assert_eq!(hash_by_value(deep(200_000).as_bytes()), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a-c\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        /// Two texts have the same hash exactly when a parser reads the same value from them.
        #[test]
        fn it_agrees_with_a_parser(one in value(), other in value()) {
            let (compact, pretty) = (one.to_string(), serde_json::to_string_pretty(&one).unwrap());
            prop_assert!(same(&compact, &pretty));
            prop_assert_eq!(same(&pretty, &other.to_string()), one == other);
        }
    }
}
