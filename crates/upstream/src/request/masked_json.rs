//! Masks secrets in JSON: the values of fields whose names are those of secrets, and strings that
//! are secrets by themselves. Everything else stays as it is written, including numbers and the
//! order of fields. Untrusted input is bounded in depth, and writing stops beyond a length.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tidegate_core::masking::{MASK, mask_text};
use tidegate_core::url_query::is_secret_field;

/// How deep JSON is shown; what is deeper is left out.
const DEPTH_MAX: usize = 32;
/// What stands for JSON that is nested too deep.
const TOO_DEEP: &str = "\"…\"";

/// Fields that name what another field of their object holds, and those that hold it.
const NAME_FIELDS: [&str; 6] = ["name", "key", "header", "field", "label", "param"];
const VALUE_FIELDS: [&str; 5] = ["value", "values", "content", "data", "val"];

/// Masks a JSON text; `None` when it is not JSON. Ends with the value that makes it longer than
/// `most` bytes.
pub(super) fn mask_json(text: &str, most: usize) -> Option<String> {
    mask_nested(text, most, DEPTH_MAX)
}

fn mask_nested(text: &str, most: usize, depth: usize) -> Option<String> {
    let json: &RawValue = serde_json::from_str(text).ok()?;
    let mut writer = MaskedWriter { out: String::new(), most };
    writer.value("", json, depth);
    Some(writer.out)
}

/// The fields of an object, in order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FieldVisitor)
    }
}

impl Fields<'_> {
    /// The name of a secret that another field of the object has, as in
    /// `{"name":"Authorization","value":…}`.
    fn secret_name(&self) -> Option<String> {
        let is_name = |field: &str| NAME_FIELDS.contains(&field.to_ascii_lowercase().as_str());
        let names = self.0.iter().filter(|(field, _)| is_name(field));
        names.filter_map(|(_, value)| secret_name_in(value)).next()
    }
}

/// The name of a secret that a string is.
fn secret_name_in(value: &RawValue) -> Option<String> {
    let name = serde_json::from_str::<String>(value.get()).ok()?;
    let name = name.trim().trim_end_matches(':');
    is_secret_field(name, "").then(|| name.to_owned())
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

struct MaskedWriter {
    out: String,
    most: usize,
}

impl MaskedWriter {
    /// Writes the value of a field of this name.
    fn value(&mut self, name: &str, json: &RawValue, depth: usize) {
        let text = json.get();
        let first = text.as_bytes().first().copied().unwrap_or_default();
        let is_secret = first != b'n' && is_secret_field(name, "");
        match first {
            _ if is_secret => self.string(MASK),
            b'{' | b'[' if depth == 0 => self.out.push_str(TOO_DEEP),
            b'{' => self.object(text, depth - 1),
            b'[' => self.array(name, text, depth - 1),
            b'"' => self.text(name, text, depth),
            _ => self.out.push_str(text),
        }
    }

    fn object(&mut self, text: &str, depth: usize) {
        // A name that is not Unicode cannot be compared with those of secrets.
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else { return self.string(MASK) };
        let named = fields.secret_name();
        let Fields(fields) = fields;
        self.out.push('{');
        for (place, (name, value)) in fields.into_iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.comma(place);
            self.string(&name);
            self.out.push(':');
            let is_named = VALUE_FIELDS.contains(&name.to_ascii_lowercase().as_str());
            self.value(named.as_deref().filter(|_| is_named).unwrap_or(&name), value, depth);
        }
        self.out.push('}');
    }

    /// Writes the items of a list, which are what its name says.
    fn array(&mut self, name: &str, text: &str, depth: usize) {
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        // A header is often written as a pair.
        let named = match items.as_slice() {
            [first, _] => secret_name_in(first),
            _ => None,
        };
        self.out.push('[');
        for (place, item) in items.into_iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.comma(place);
            self.value(named.as_deref().filter(|_| place == 1).unwrap_or(name), item, depth);
        }
        self.out.push(']');
    }

    /// Writes a string, which may be a secret, a URL with one, or JSON itself.
    fn text(&mut self, name: &str, text: &str, depth: usize) {
        // A text that is not Unicode is masked: nothing can be said about it.
        let Ok(value) = serde_json::from_str::<String>(text) else { return self.string(MASK) };
        if is_secret_field(name, &value) {
            return self.string(MASK);
        }
        let is_json = value.trim_start().starts_with(['{', '[']) && depth > 0;
        let nested = if is_json { mask_nested(&value, self.most, depth - 1) } else { None };
        match nested {
            Some(nested) => self.string(&nested),
            None => self.string(&mask_text(&value)),
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push_str(&serde_json::Value::from(text).to_string());
    }

    fn comma(&mut self, place: usize) {
        if place > 0 {
            self.out.push(',');
        }
    }

    const fn is_full(&self) -> bool {
        self.out.len() > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> Option<String> {
        mask_json(text, 1_000)
    }

    /// OPS-22: secrets are found by the names of fields and by their values, however deep.
    #[test]
    fn ops_22_secrets_in_json_are_masked() {
        let table = [
            ("7", "7"),
            (
                r#"{"b": 1.10, "a": [12345678901234567890123, null]}"#,
                r#"{"b":1.10,"a":[12345678901234567890123,null]}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
            (
                r#"{"password":"x","token":null,"pin":1234}"#,
                r#"{"password":"redacted","token":null,"pin":"redacted"}"#,
            ),
            (r#"{"pass\u0077ord":"x"}"#, r#"{"password":"redacted"}"#),
            (
                r#"{"accessToken":"x","clientSecret":{"a":"x"}}"#,
                r#"{"accessToken":"redacted","clientSecret":"redacted"}"#,
            ),
            (r#"[{"deep":[{"apiKey":"x"}]}]"#, r#"[{"deep":[{"apiKey":"redacted"}]}]"#),
            (
                r#"{"note":"Bearer x","url":"https://a/?sig=x&n=1"}"#,
                r#"{"note":"redacted","url":"https://a/?sig=redacted&n=1"}"#,
            ),
            (r#"{"body":"{\"password\":\"x\"}"}"#, r#"{"body":"{\"password\":\"redacted\"}"}"#),
            (r#"{"to":"https://u:x@h/"}"#, r#"{"to":"https://u:redacted@h/"}"#),
            (
                r#"[{"name":"Authorization","value":"x"},{"name":"title","value":"y"},{"Value":["x"],"field":"api_key"}]"#,
                r#"[{"name":"Authorization","value":"redacted"},{"name":"title","value":"y"},{"Value":"redacted","field":"api_key"}]"#,
            ),
            (
                r#"{"headers":[["Authorization","x"],["Accept","y"]],"log":"Cookie: x"}"#,
                r#"{"headers":[["Authorization","redacted"],["Accept","y"]],"log":"Cookie: redacted"}"#,
            ),
            (r#"{"u":"\ud800"}"#, r#"{"u":"redacted"}"#),
            (r#""sk_live_x""#, r#""redacted""#),
        ];
        for (text, expected) in table {
            assert_eq!(masked(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(masked("{oops"), None);
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let shown = masked(&deep).unwrap();
        assert_eq!(shown, format!("{}\"…\"{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)));
        let wide = format!("[{}1]", "1,".repeat(100_000));
        assert!(masked(&wide).unwrap().len() < 1_010);
    }
}
