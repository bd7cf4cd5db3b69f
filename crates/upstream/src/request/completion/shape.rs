//! Names the field of a completion that cannot be read.

use serde_json::Value;

use crate::port::FieldRefusal;

/// What a field must be.
#[derive(Clone, Copy)]
enum FieldShape {
    Text,
    Seconds,
    Conditions,
    Callback,
    Poll,
}

/// The fields of an object: name, what it must be, and whether it is required.
type Fields = [(&'static str, FieldShape, bool)];

const COMPLETION: &Fields = &[
    ("callback", FieldShape::Callback, false),
    ("poll", FieldShape::Poll, false),
    ("timeout_s", FieldShape::Seconds, false),
];
const CALLBACK: &Fields = &[
    ("url", FieldShape::Text, true),
    ("token", FieldShape::Text, false),
    ("done", FieldShape::Conditions, false),
    ("failed", FieldShape::Conditions, false),
];
const POLL: &Fields = &[
    ("path", FieldShape::Text, true),
    ("every_s", FieldShape::Seconds, false),
    ("done", FieldShape::Conditions, true),
    ("failed", FieldShape::Conditions, false),
];

/// All refusals of a completion that could not be read; never empty.
pub(super) fn problems(json: &str) -> Vec<FieldRefusal> {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let mut found = Vec::new();
    check_object(&value, "completion", COMPLETION, &mut found);
    if found.is_empty() {
        found.push(FieldRefusal::new("completion", "The completion cannot be read."));
    }
    found
}

fn check_object(value: &Value, place: &str, fields: &Fields, found: &mut Vec<FieldRefusal>) {
    let Some(object) = value.as_object() else { return found.push(must_be(place, "an object")) };
    for name in object.keys().filter(|name| fields.iter().all(|(known, ..)| known != name)) {
        let known: Vec<_> = fields.iter().map(|(name, ..)| *name).collect();
        let name: String = name.chars().take(50).collect();
        let message = format!("There is no field {name:?}; the fields are {}.", known.join(", "));
        found.push(FieldRefusal::new(format!("{place}.{name}"), message));
    }
    for (name, wanted, is_required) in fields {
        let place = format!("{place}.{name}");
        match object.get(*name) {
            Some(value) => check_value(value, &place, *wanted, found),
            None if *is_required => found.push(FieldRefusal::missing(place)),
            None => {}
        }
    }
}

fn check_value(value: &Value, place: &str, wanted: FieldShape, found: &mut Vec<FieldRefusal>) {
    let is_list_of_values =
        |value: &Value| value.as_object().is_some_and(|it| it.values().all(Value::is_array));
    let (is_right, words) = match wanted {
        FieldShape::Callback if value.is_object() => return check_object(value, place, CALLBACK, found),
        FieldShape::Poll if value.is_object() => return check_object(value, place, POLL, found),
        FieldShape::Text => (value.is_string(), "a string"),
        FieldShape::Seconds => (value.is_u64(), "a whole number of seconds"),
        FieldShape::Conditions => (
            is_list_of_values(value),
            "an object of JSON pointers and lists of values, as in {\"/status\":[\"succeeded\"]}",
        ),
        FieldShape::Callback => {
            (value.is_boolean() || value.is_null(), "true, or an object with the field url")
        }
        FieldShape::Poll => (value.is_null(), "an object"),
    };
    if !is_right {
        found.push(must_be(place, words));
    }
}

fn must_be(place: &str, words: &str) -> FieldRefusal {
    FieldRefusal::new(place, format!("The field {place:?} must be {words}."))
}
