//! Compares the response to a write with what was asked for: a server that accepts a field and
//! shows another value did not keep it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::name::visible_text;

/// Fields that are about the request, not about the object.
const UNSHOWN: [&str; 3] = ["nonce", "enforce_nonce", "allowed_mentions"];

/// Returns the names of the fields that a response shows with other values than were asked for. A
/// field that it does not show is not among them.
#[must_use]
pub fn unkept_fields(asked: &Value, answered: &Value) -> Vec<String> {
    let (Some(asked), Some(answered)) = (asked.as_object(), answered.as_object()) else {
        return Vec::new();
    };
    let differs = |name: &str, value: &Value| match (name, answered.get(name)) {
        (_, None) => false,
        ("permission_overwrites", Some(shown)) => overwrites(value) != overwrites(shown),
        // An invisible marker that a server drops makes no difference to people.
        ("name" | "topic", Some(shown)) => visible_text(text(value)) != visible_text(text(shown)),
        ("content", Some(shown)) => text(value).trim() != text(shown).trim(),
        // Of several colours the first one counts.
        ("color", Some(shown)) => {
            let shown =
                answered.get("colors").and_then(|colors| colors.get("primary_color")).unwrap_or(shown);
            value != shown
        }
        (_, Some(shown)) => !is_same(value, shown),
    };
    let names = asked.iter().filter(|(name, _)| !UNSHOWN.contains(&name.as_str()));
    names.filter(|(name, value)| differs(name, value)).map(|(name, _)| name.clone()).collect()
}

/// Returns whether two values are the same; nothing, an empty text, no and zero all mean none.
fn is_same(asked: &Value, shown: &Value) -> bool {
    let is_none = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    };
    asked == shown || (is_none(asked) && is_none(shown))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns overwrites by target, without those that do nothing.
fn overwrites(list: &Value) -> BTreeMap<String, (String, String)> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let bits = |one: &Value, field: &str| one[field].as_str().unwrap_or("0").to_owned();
    let all = list.iter().map(|one| (text(&one["id"]).to_owned(), (bits(one, "allow"), bits(one, "deny"))));
    all.filter(|(_, (allow, deny))| allow != "0" || deny != "0").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// OPS-19: a field that a response shows differently is named; what it leaves out, and what is
    /// only written differently, is not.
    #[test]
    fn ops_19_fields_that_did_not_stick_are_named() {
        let allow = |id: &str, bits: &str| json!({"id": id, "type": 0, "allow": bits, "deny": "0"});
        let asked = json!({
            "name": "desk", "topic": null, "nsfw": false, "rate_limit_per_user": 5, "nonce": "x",
            "permission_overwrites": [allow("1", "1024"), allow("2", "2048")],
        });
        let same = json!({
            "name": "desk", "topic": "", "rate_limit_per_user": 5, "nonce": null,
            "permission_overwrites": [allow("2", "2048"), allow("3", "0"), allow("1", "1024")],
        });
        assert_eq!(unkept_fields(&asked, &same), Vec::<String>::new());
        let key = crate::ObjectKey::new("desk").unwrap();
        let marker = crate::name::invisible_marker("SSO", crate::ObjectKind::Role, &key);
        let (marked, plain) = (json!({"name": format!("desk{marker}")}), json!({"name": "desk"}));
        assert_eq!(unkept_fields(&marked, &plain), Vec::<String>::new());
        let other = json!({
            "name": "Desk", "topic": "old", "rate_limit_per_user": 0, "permission_overwrites": [allow("1", "1024")],
        });
        assert_eq!(
            unkept_fields(&asked, &other),
            ["name", "permission_overwrites", "rate_limit_per_user", "topic"]
        );
        let role = json!({"color": 255});
        assert_eq!(unkept_fields(&role, &json!({"color": 0, "colors": {"primary_color": 255}})), [""; 0]);
        assert_eq!(unkept_fields(&role, &json!({"color": 7})), ["color"]);
        assert_eq!(unkept_fields(&json!([{"id": "1"}]), &json!([])), [""; 0]);
    }
}
