//! One field of an object, read as what it must be. A mistake is told with the field's name and what was sent is
//! never repeated.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate::{Code, Error, Result};

use super::object::missing;

/// A field by name, as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub name: &'static str,
    pub raw: Option<&'a RawValue>,
}

impl<'a> Field<'a> {
    /// `null` is as good as nothing.
    fn raw(&self) -> Option<&'a str> {
        self.raw.map(RawValue::get).filter(|raw| *raw != "null")
    }

    fn wrong(&self, wanted: &str) -> Error {
        Error::new(Code::Malformed, format!("The field {:?} must be {wanted}.", self.name)).field(self.name)
    }

    fn parse<T: Deserialize<'a>>(&self, wanted: &str) -> Result<Option<T>> {
        self.raw().map(|raw| serde_json::from_str(raw).map_err(|_| self.wrong(wanted))).transpose()
    }

    /// A text.
    pub(crate) fn text(&self) -> Result<Option<String>> {
        self.parse("a text")
    }

    /// That a text has so many bytes.
    pub(crate) fn within(&self, text: &str, bytes: RangeInclusive<usize>) -> Result<()> {
        if bytes.contains(&text.len()) {
            return Ok(());
        }
        let message =
            format!("The field {:?} must be {} to {} bytes long.", self.name, bytes.start(), bytes.end());
        Err(Error::new(Code::Invalid, message).field(self.name))
    }

    /// A text that must be there.
    pub(crate) fn needed(&self) -> Result<String> {
        self.text()?.ok_or_else(|| missing(self.name))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text()? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.map(Some).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(&format!("one of {}", known.join(", ")))
        })
    }

    /// True or false.
    pub(crate) fn flag(&self) -> Result<Option<bool>> {
        self.parse("true or false")
    }

    /// A whole number within bounds.
    pub(crate) fn integer(&self, bounds: RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(number) = self.number()? else { return Ok(None) };
        let exact = self.raw().and_then(|raw| raw.parse::<u64>().ok());
        match exact {
            Some(number) if bounds.contains(&number) => Ok(Some(number)),
            _ if number.fract() != 0.0 => Err(self.wrong("a whole number")),
            _ => Err(self.outside(bounds.start(), bounds.end())),
        }
    }

    /// A number of any size.
    fn number(&self) -> Result<Option<f64>> {
        let Some(raw) = self.raw() else { return Ok(None) };
        let first = raw.as_bytes().first().copied().unwrap_or_default();
        if first != b'-' && !first.is_ascii_digit() {
            return Err(self.wrong("a number"));
        }
        raw.parse().map(Some).map_err(|_| self.wrong("a number"))
    }

    /// A number within bounds.
    pub(crate) fn figure(&self, bounds: RangeInclusive<f64>) -> Result<Option<f64>> {
        match self.number()? {
            Some(number) if !bounds.contains(&number) => Err(self.outside(bounds.start(), bounds.end())),
            number => Ok(number),
        }
    }

    fn outside(&self, least: impl std::fmt::Display, most: impl std::fmt::Display) -> Error {
        let message = format!("The field {:?} must be {least} to {most}.", self.name);
        Error::new(Code::Invalid, message).field(self.name)
    }

    /// A JSON object, as it was sent.
    pub(crate) fn object(&self) -> Result<&'a str> {
        let raw = self.raw().ok_or_else(|| missing(self.name))?;
        if raw.starts_with('{') { Ok(raw) } else { Err(self.wrong("an object in braces")) }
    }
}
