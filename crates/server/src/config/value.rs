//! A value with the place it stands at, and the sentences about values that are not what they must be.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::problem::{Problem, Spot};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub value: T,
    pub at: Spot,
    pub place: String,
}

impl<T> Found<T> {
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { at: self.at.clone(), place: self.place.clone(), message: message.into() }
    }
}

/// What may stand behind a key.
pub(super) enum Raw<'a> {
    Text(String),
    Value(&'a DeValue<'a>),
}

pub(super) fn keep<T>(
    found: Found<Raw<'_>>,
    value: Result<T, String>,
    problems: &mut Vec<Problem>,
) -> Option<Found<T>> {
    let Found { at, place, .. } = found;
    match value {
        Ok(value) => Some(Found { value, at, place }),
        Err(message) => {
            problems.push(Problem { at, place, message });
            None
        }
    }
}

pub(super) fn out_of<T: Display>(bounds: &RangeInclusive<T>, text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!("It must be {} to {}, not {text}.", bounds.start(), bounds.end())
}

pub(super) fn wanted(what: &str, got: &DeValue<'_>) -> String {
    let got = match got {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("It must be {what}, not {got}.")
}
