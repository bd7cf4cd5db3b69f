//! A value with its location, and the messages about invalid values.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::problem::{ConfigProblem, SourceLocation};

/// A value and its location.
#[derive(Clone, Debug)]
pub(super) struct LocatedValue<T> {
    pub value: T,
    pub at: SourceLocation,
    pub key_path: String,
}

impl<T> LocatedValue<T> {
    /// A value that was given with a flag of the command line.
    pub(super) fn from_flag(flag: &str, value: T) -> Self {
        Self { value, at: SourceLocation::outside_file(flag), key_path: String::new() }
    }

    /// The value of a flag if it was given, otherwise this one.
    pub(super) fn override_by_flag(self, flag: &str, given: Option<T>) -> Self {
        given.map_or(self, |value| Self::from_flag(flag, value))
    }

    pub(super) fn problem(&self, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem { at: self.at.clone(), key_path: self.key_path.clone(), message: message.into() }
    }
}

/// The raw value of a key.
pub(super) enum RawConfigValue<'a> {
    Text(String),
    Value(&'a DeValue<'a>),
}

pub(super) fn value_or_problem<T>(
    found: LocatedValue<RawConfigValue<'_>>,
    value: Result<T, String>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<LocatedValue<T>> {
    let LocatedValue { at, key_path: place, .. } = found;
    match value {
        Ok(value) => Some(LocatedValue { value, at, key_path: place }),
        Err(message) => {
            problems.push(ConfigProblem { at, key_path: place, message });
            None
        }
    }
}

pub(super) fn out_of_bounds<T: Display>(bounds: &RangeInclusive<T>, text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!("It must be {} to {}, not {text}.", bounds.start(), bounds.end())
}

pub(super) fn type_mismatch(what: &str, got: &DeValue<'_>) -> String {
    let got = match got {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("It must be {what}, not {got}.")
}
