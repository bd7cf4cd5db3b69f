//! Reads JSON to show it. What an upstream or a caller wrote is kept as it came, and not all of
//! that fits a [`Value`]: a number beyond the range of a double, half of a surrogate pair, a
//! hundred levels of lists. Such a part becomes its own text, so that all the rest is still shown.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// Below this depth a part that does not fit is not taken apart.
const DEPTH_MAX: usize = 16;

/// Reads JSON; `None` when it is none.
#[must_use]
pub fn read(json: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(json) {
        return Some(value);
    }
    let raw: &RawValue = serde_json::from_slice(json).ok()?;
    Some(part(raw.get(), 0))
}

fn part(json: &str, depth: usize) -> Value {
    if let Ok(value) = serde_json::from_str(json) {
        return value;
    }
    if depth < DEPTH_MAX {
        let inner = |raw: &RawValue| part(raw.get(), depth + 1);
        if let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
            return fields.into_iter().map(|(name, raw)| (name, inner(raw))).collect();
        }
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
            return items.into_iter().map(inner).collect();
        }
    }
    Value::String(json.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_its_text() {
        let long = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let answer = format!(
            r#"{{"id":"op_1","result":{{"big":1e400,"n":[1,-1e999],"half":"\ud800","ok":1.5}},"deep":{long}}}"#
        );
        let value = read(answer.as_bytes()).unwrap();
        assert_eq!(value["id"], "op_1");
        assert_eq!(
            value["result"],
            json!({ "big": "1e400", "n": [1, "-1e999"], "half": r#""\ud800""#, "ok": 1.5 })
        );
        assert!(value["deep"].to_string().contains("[[[["), "{value}");
        assert_eq!(read(br#"{"a":1}"#), Some(json!({ "a": 1 })));
        for text in ["", "<html>", "{", r#"{"a":tru}"#] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
