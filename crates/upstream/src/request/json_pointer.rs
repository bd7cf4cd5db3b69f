//! Reads and writes at a JSON pointer. Everything stays byte for byte as it came: no number is
//! rounded and no key is moved.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The deepest pointer.
const DEPTH_MAX: usize = 16;

/// The members of an object, in order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        from.deserialize_map(Collect).map(Self)
    }
}

/// The value at a pointer, as it is written; `None` when there is none. Of equal names the last one
/// counts.
pub(crate) fn get<'a>(json: &'a str, pointer: &str) -> Option<&'a str> {
    pointer.split('/').skip(1).map(unescape).try_fold(json, |json, part| {
        let found = match serde_json::from_str(json) {
            Ok(Members(members)) => members.into_iter().rfind(|(name, _)| *name == part)?.1,
            Err(_) => *serde_json::from_str::<Vec<&RawValue>>(json).ok()?.get(part.parse::<usize>().ok()?)?,
        };
        Some(found.get())
    })
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Returns the JSON with a text at a pointer, whose parents are created where they are missing.
///
/// # Errors
/// When a parent is no object, or the pointer is too deep.
pub(crate) fn set_text(json: &RawValue, pointer: &str, text: &str) -> Result<Box<RawValue>, String> {
    let path: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
    if path.len() > DEPTH_MAX {
        return Err(format!("The pointer {pointer:?} is more than {DEPTH_MAX} levels deep."));
    }
    let text = to_json(text)?;
    let written =
        set(json.get(), &path, &text).ok_or_else(|| format!("There is no object at {pointer:?}."))?;
    RawValue::from_string(written).map_err(|_| format!("{pointer:?} cannot be written."))
}

fn set(json: &str, path: &[String], text: &str) -> Option<String> {
    let Some((first, rest)) = path.split_first() else { return Some(text.to_owned()) };
    let Members(members) = serde_json::from_str(json).ok()?;
    let mut out = Vec::with_capacity(members.len() + 1);
    let mut is_set = false;
    for (name, value) in members {
        let value = if name == *first {
            is_set = true;
            set(value.get(), rest, text)?
        } else {
            value.get().to_owned()
        };
        out.push(format!("{}:{value}", to_json(&name).ok()?));
    }
    if !is_set {
        let empty = if rest.is_empty() { "null" } else { "{}" };
        out.push(format!("{}:{}", to_json(first).ok()?, set(empty, rest, text)?));
    }
    Some(format!("{{{}}}", out.join(",")))
}

fn to_json(text: &str) -> Result<String, String> {
    serde_json::to_string(text).map_err(|_| "The text cannot be written as JSON.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_is_written() {
        let json = r#"{"a":{"b/c":[1,{"d":1.10}]},"n":1,"n":2,"s":"\ud800","e":1e400}"#;
        for (pointer, wanted) in [
            ("/a/b~1c/1/d", Some("1.10")),
            ("/n", Some("2")),
            ("/e", Some("1e400")),
            ("/s", Some(r#""\ud800""#)),
            ("", Some(json)),
            ("/a/b~1c/2", None),
            ("/a/b~1c/x", None),
            ("/n/x", None),
            ("/x", None),
        ] {
            assert_eq!(get(json, pointer), wanted, "{pointer}");
        }
    }

    #[test]
    fn only_the_place_itself_changes() {
        let table = [
            (
                r#"{"z":12345678901234567890123,"a":1.10}"#,
                "/u",
                Some(r#"{"z":12345678901234567890123,"a":1.10,"u":"x\"y"}"#),
            ),
            (r#"{"a":{"b":[1.0]}}"#, "/a/c/d", Some(r#"{"a":{"b":[1.0],"c":{"d":"x\"y"}}}"#)),
            (r#"{"a/b":1,"~":2}"#, "/a~1b", Some(r#"{"a/b":"x\"y","~":2}"#)),
            (r#"{"a":[1]}"#, "/a/0", None),
            (r#"{"a":7}"#, "/a/b", None),
            ("[1]", "/0", None),
        ];
        for (json, pointer, wanted) in table {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            let found = set_text(&raw, pointer, "x\"y").ok().map(|raw| raw.get().to_owned());
            assert_eq!(found.as_deref(), wanted, "{json} {pointer}");
        }
        let raw = RawValue::from_string("{}".to_owned()).unwrap();
        assert!(set_text(&raw, &"/a".repeat(17), "x").is_err());
    }
}
