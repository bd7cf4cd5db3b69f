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
        match self.raw().and_then(whole) {
            Some(number) if bounds.contains(&number) => Ok(Some(number)),
            _ if number.fract() != 0.0 => Err(self.wrong("a whole number")),
            _ => Err(self.outside(bounds.start(), bounds.end())),
        }
    }

    /// A number of any size, as it was sent.
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

/// A whole number, also when it is written `7.0` or `7e0`, as long as a float holds it exactly.
pub(crate) fn whole(raw: &str) -> Option<u64> {
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
            assert_eq!(whole(raw), Some(wanted), "{raw}");
        }
        for raw in ["7.5", "-1", "-1.0", "1e300", "18446744073709551616.0", "x"] {
            assert_eq!(whole(raw), None, "{raw}");
        }
    }
}
