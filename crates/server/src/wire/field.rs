//! One field of an object, parsed as its type. An error has the field's name and never repeats the
//! value that was sent.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::Time;
use tidegate_core::text::is_control;

use super::object::missing;
use super::time;
use crate::error::{Error, ErrorCode, Result};

/// A field by name, as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub name: &'static str,
    pub raw: Option<&'a RawValue>,
}

impl<'a> Field<'a> {
    /// The raw value; `null` counts as absent.
    fn raw(&self) -> Option<&'a str> {
        self.raw.map(RawValue::get).filter(|raw| *raw != "null")
    }

    fn type_error(&self, wanted: &str) -> Error {
        Error::new(ErrorCode::Malformed, format!("The field {:?} must be {wanted}.", self.name))
            .field(self.name)
    }

    fn parse<T: Deserialize<'a>>(&self, wanted: &str) -> Result<Option<T>> {
        self.raw().map(|raw| serde_json::from_str(raw).map_err(|_| self.type_error(wanted))).transpose()
    }

    /// Parses a text.
    pub(crate) fn text(&self) -> Result<Option<String>> {
        self.parse("a string")
    }

    /// Parses a text that is not empty.
    pub(crate) fn filled_text(&self) -> Result<Option<String>> {
        let text = self.text()?;
        if text.as_ref().is_some_and(String::is_empty) {
            let message = format!("The field {:?} is empty; give it a value, or leave it out.", self.name);
            return Err(Error::new(ErrorCode::Malformed, message).field(self.name));
        }
        Ok(text)
    }

    /// Parses a time.
    pub(crate) fn time(&self) -> Result<Option<Time>> {
        let Some(text) = self.filled_text()? else { return Ok(None) };
        let time = time::parse(&text);
        time.map(Some).ok_or_else(|| self.type_error("a time of RFC 3339, as in 2031-05-06T07:08:09Z"))
    }

    /// Checks the length of a text in bytes.
    pub(crate) fn check_len(&self, text: &str, bytes: RangeInclusive<usize>) -> Result<()> {
        if bytes.contains(&text.len()) {
            return Ok(());
        }
        let message =
            format!("The field {:?} must be {} to {} bytes long.", self.name, bytes.start(), bytes.end());
        Err(Error::new(ErrorCode::Invalid, message).field(self.name))
    }

    /// Checks the length of a name or a note, and that it holds no control characters.
    pub(crate) fn check_line(&self, text: &str, bytes: RangeInclusive<usize>) -> Result<()> {
        self.check_len(text, bytes)?;
        if text.chars().any(is_control) {
            let message = format!("The field {:?} must not hold control characters.", self.name);
            return Err(Error::new(ErrorCode::Invalid, message).field(self.name));
        }
        Ok(())
    }

    /// Parses a required text.
    pub(crate) fn required_text(&self) -> Result<String> {
        self.text()?.ok_or_else(|| missing(self.name))
    }

    /// Parses one of a few words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text()? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.map(Some).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.type_error(&format!("one of {}", known.join(", ")))
        })
    }

    /// Parses true or false.
    pub(crate) fn flag(&self) -> Result<Option<bool>> {
        self.parse("true or false")
    }

    /// Parses a whole number within bounds.
    pub(crate) fn integer(&self, bounds: RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(number) = self.number()? else { return Ok(None) };
        match self.raw().and_then(parse_whole) {
            Some(number) if bounds.contains(&number) => Ok(Some(number)),
            _ if number.fract() != 0.0 => Err(self.type_error("a whole number")),
            _ => Err(self.out_of_bounds(bounds.start(), bounds.end())),
        }
    }

    /// Parses a number of any size.
    fn number(&self) -> Result<Option<f64>> {
        let Some(raw) = self.raw() else { return Ok(None) };
        let first = raw.as_bytes().first().copied().unwrap_or_default();
        if first != b'-' && !first.is_ascii_digit() {
            return Err(self.type_error("a number"));
        }
        raw.parse().map(Some).map_err(|_| self.type_error("a number"))
    }

    /// Parses a number within bounds.
    pub(crate) fn figure(&self, bounds: RangeInclusive<f64>) -> Result<Option<f64>> {
        match self.number()? {
            Some(number) if !bounds.contains(&number) => {
                Err(self.out_of_bounds(bounds.start(), bounds.end()))
            }
            number => Ok(number),
        }
    }

    fn out_of_bounds(&self, least: impl std::fmt::Display, most: impl std::fmt::Display) -> Error {
        let message = format!("The field {:?} must be {least} to {most}.", self.name);
        Error::new(ErrorCode::Invalid, message).field(self.name)
    }

    /// Returns a JSON object as it was sent.
    pub(crate) fn object(&self) -> Result<&'a str> {
        let raw = self.raw().ok_or_else(|| missing(self.name))?;
        if raw.starts_with('{') { Ok(raw) } else { Err(self.type_error("an object")) }
    }
}

/// Parses a whole number, even if it is written `7.0` or `7e0`, as long as a float represents it
/// exactly.
pub(crate) fn parse_whole(raw: &str) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    raw.parse().ok().or_else(|| {
        let number: f64 = raw.parse().ok()?;
        let is_whole = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
        is_whole.then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        for (raw, wanted) in [("7", 7), ("7.0", 7), ("7e1", 70), ("18446744073709551615", u64::MAX)] {
            assert_eq!(parse_whole(raw), Some(wanted), "{raw}");
        }
        for raw in ["7.5", "-1", "-1.0", "1e300", "18446744073709551616.0", "x"] {
            assert_eq!(parse_whole(raw), None, "{raw}");
        }
    }
}
