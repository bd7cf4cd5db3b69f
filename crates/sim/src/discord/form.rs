//! Reads the fields of a body, and reports errors the way Discord does: nested by field, each with
//! a code and a sentence. It knows no object.

use std::ops::RangeInclusive;

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::refusal::DiscordRefusal;
use super::snowflake;

/// The path, code and message of one error.
type FieldError = (Vec<String>, &'static str, String);

/// The fields of an object.
#[derive(Debug)]
pub struct Form<'a> {
    fields: Option<&'a Map<String, Value>>,
    path: Vec<String>,
    errors: Vec<FieldError>,
}

impl<'a> Form<'a> {
    /// Creates a form of a body.
    #[must_use]
    pub fn of(body: &'a Value) -> Self {
        Self::at(Vec::new(), body)
    }

    fn at(path: Vec<String>, body: &'a Value) -> Self {
        let mut form = Self { fields: body.as_object(), path, errors: Vec::new() };
        if form.fields.is_none() {
            let message = "Only dictionaries may be used in a DictType".to_owned();
            form.errors.push((form.path.clone(), "DICT_TYPE_CONVERT", message));
        }
        form
    }

    /// Adds an error for a field.
    pub fn add_error(&mut self, field: &str, code: &'static str, message: String) {
        let mut path = self.path.clone();
        path.push(field.to_owned());
        self.errors.push((path, code, message));
    }

    /// Returns whether a field exists, even if it is `null`.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.fields.is_some_and(|fields| fields.contains_key(field))
    }

    /// Returns a field unread, unless it is `null`.
    #[must_use]
    pub fn raw(&self, field: &str) -> Option<&'a Value> {
        self.fields?.get(field).filter(|value| !value.is_null())
    }

    /// Returns whether a field is `null`.
    #[must_use]
    pub fn is_null(&self, field: &str) -> bool {
        self.fields.and_then(|fields| fields.get(field)).is_some_and(Value::is_null)
    }

    /// Reads a text of any length.
    pub fn text(&mut self, field: &str) -> Option<&'a str> {
        let value = self.raw(field)?;
        if value.as_str().is_none() {
            self.add_error(
                field,
                "STRING_TYPE_CONVERT",
                format!("Could not interpret \"{value}\" as string."),
            );
        }
        value.as_str()
    }

    /// Reads a text of at most so many characters.
    pub fn short_text(&mut self, field: &str, most: usize) -> Option<&'a str> {
        let text = self.text(field)?;
        if text.chars().count() > most {
            self.add_error(field, "BASE_TYPE_MAX_LENGTH", format!("Must be {most} or fewer in length."));
        }
        Some(text)
    }

    /// Reads a name, which `made` normalizes.
    pub fn name(&mut self, field: &str, made: fn(&str) -> String) -> Option<String> {
        let asked = self.text(field)?;
        let name = made(asked);
        if !super::names::fits(asked) || !super::names::fits(&name) {
            let most = super::names::NAME_LEN_MAX;
            self.add_error(field, "BASE_TYPE_BAD_LENGTH", format!("Must be between 1 and {most} in length."));
        }
        Some(name)
    }

    /// Reads a whole number.
    pub fn number(&mut self, field: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.raw(field)?;
        let Some(number) = value.as_u64() else {
            self.add_error(field, "NUMBER_TYPE_COERCE", format!("Value \"{}\" is not int.", plain(value)));
            return None;
        };
        if number > *range.end() {
            let message = format!("int value should be less than or equal to {}.", range.end());
            self.add_error(field, "NUMBER_TYPE_MAX", message);
        } else if number < *range.start() {
            let message = format!("int value should be greater than or equal to {}.", range.start());
            self.add_error(field, "NUMBER_TYPE_MIN", message);
        }
        Some(number)
    }

    /// Reads a boolean.
    pub fn flag(&mut self, field: &str) -> Option<bool> {
        let value = self.raw(field)?;
        if value.as_bool().is_none() {
            self.add_error(field, "BOOLEAN_TYPE_PARSE", "Must be either true or false.".to_owned());
        }
        value.as_bool()
    }

    /// Reads an id.
    pub fn id(&mut self, field: &str) -> Option<u64> {
        let value = self.raw(field)?;
        let id = snowflake::parse(&plain(value));
        if id.is_none() {
            self.add_error(
                field,
                "NUMBER_TYPE_COERCE",
                format!("Value \"{}\" is not snowflake.", plain(value)),
            );
        }
        id
    }

    /// Reads permissions: a decimal text.
    pub fn bits(&mut self, field: &str) -> Option<u64> {
        let value = self.raw(field)?;
        let bits = plain(value).parse().ok();
        if bits.is_none() {
            self.add_error(field, "NUMBER_TYPE_COERCE", format!("Value \"{}\" is not int.", plain(value)));
        }
        bits
    }

    /// Reads the objects of a list, of which there are at most so many.
    pub fn list<T>(
        &mut self,
        field: &str,
        most: usize,
        mut read: impl FnMut(&mut Form<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.raw(field)?;
        let Some(items) = value.as_array() else {
            self.add_error(field, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType".to_owned());
            return None;
        };
        if items.len() > most {
            self.add_error(field, "BASE_TYPE_MAX_LENGTH", format!("Must be {most} or fewer in length."));
        }
        let mut path = self.path.clone();
        path.push(field.to_owned());
        let (all, mut wrongs) = read_items(&path, items, &mut read);
        self.errors.append(&mut wrongs);
        Some(all)
    }

    /// Requires that a field exists.
    pub fn require(&mut self, field: &str) {
        if self.raw(field).is_none() {
            self.add_error(field, "BASE_TYPE_REQUIRED", "This field is required".to_owned());
        }
    }

    /// Finishes the form and returns whether all fields were valid.
    ///
    /// # Errors
    /// With all errors.
    pub fn finish(self) -> Result<(), DiscordRefusal> {
        if self.errors.is_empty() { Ok(()) } else { Err(refusal(self.errors)) }
    }
}

/// Reads the objects of a body that is a list.
///
/// # Errors
/// With all errors.
pub fn list<'a, T>(
    body: &'a Value,
    mut read: impl FnMut(&mut Form<'a>) -> Option<T>,
) -> Result<Vec<T>, DiscordRefusal> {
    let Some(items) = body.as_array() else {
        let message = "Only iterables may be used in a ListType".to_owned();
        return Err(refusal(vec![(Vec::new(), "LIST_TYPE_CONVERT", message)]));
    };
    let (all, wrongs) = read_items(&[], items, &mut read);
    if wrongs.is_empty() { Ok(all) } else { Err(refusal(wrongs)) }
}

fn read_items<'a, T>(
    path: &[String],
    items: &'a [Value],
    read: &mut impl FnMut(&mut Form<'a>) -> Option<T>,
) -> (Vec<T>, Vec<FieldError>) {
    let (mut all, mut wrongs) = (Vec::with_capacity(items.len()), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let mut path = path.to_vec();
        path.push(at.to_string());
        let mut form = Form::at(path, item);
        all.extend(read(&mut form));
        wrongs.append(&mut form.errors);
    }
    (all, wrongs)
}

fn refusal(wrongs: Vec<FieldError>) -> DiscordRefusal {
    let mut errors = json!({});
    for (path, code, message) in wrongs {
        let mut place = &mut errors;
        for part in path {
            place = &mut place[part];
        }
        let error = json!({ "code": code, "message": message });
        match &mut place["_errors"] {
            Value::Array(all) => all.push(error),
            none => *none = json!([error]),
        }
    }
    let body = json!({ "message": "Invalid Form Body", "code": 50_035, "errors": errors });
    DiscordRefusal::Plain(StatusCode::BAD_REQUEST, body)
}

/// Creates a refusal with a single error.
#[must_use]
pub fn invalid(field: &str, code: &'static str, message: String) -> DiscordRefusal {
    refusal(vec![(vec![field.to_owned()], code, message)])
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::names::trimmed;

    fn errors(body: &Value, read: fn(&mut Form<'_>)) -> String {
        let mut form = Form::of(body);
        read(&mut form);
        match form.finish() {
            Ok(()) => String::new(),
            Err(DiscordRefusal::Plain(_, body)) => body["errors"].to_string(),
            Err(DiscordRefusal::Hidden(_)) => panic!("hidden"),
        }
    }

    /// The exact nested JSON.
    #[test]
    fn what_is_wrong_is_nested_by_field() {
        let found = errors(&json!({"name": "", "list": [{}, {"allow": "x"}]}), |form| {
            form.name("name", trimmed);
            form.list("list", 100, |item| item.bits("allow"));
        });
        assert_eq!(
            found,
            concat!(
                r#"{"list":{"1":{"allow":{"_errors":[{"code":"NUMBER_TYPE_COERCE","message":"Value \"x\" is not int."}]}}},"#,
                r#""name":{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 100 in length."}]}}"#
            )
        );
        let found = errors(&json!([]), |form| form.require("name"));
        assert!(found.contains("DICT_TYPE_CONVERT") && found.contains("BASE_TYPE_REQUIRED"), "{found}");
    }

    #[test]
    fn what_is_right_or_null_passes() {
        let body = json!({"name": " ж ", "n": 5, "flag": true, "id": "7", "bits": "0", "none": null});
        let found = errors(&body, |form| {
            assert_eq!(form.name("name", trimmed).as_deref(), Some("ж"));
            assert_eq!((form.number("n", 0..=5), form.flag("flag")), (Some(5), Some(true)));
            assert_eq!((form.id("id"), form.bits("bits"), form.id("none")), (Some(7), Some(0), None));
            assert!(form.is_null("none") && form.has("none") && !form.has("other"));
        });
        assert_eq!(found, "");
    }
}
