//! The query of a URL, read strictly: unknown names, names twice and values out of bounds are refused by name.

use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use tidegate::{Code, Error, Result};
use tidegate_core::Time;

use crate::wire::failure::Failure;
use crate::wire::object::shown;
use crate::wire::time;

/// The pairs that nobody has taken yet.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| bad("query", "is not UTF-8"))?;
            let value = decode(value).ok_or_else(|| bad(&name, "is not UTF-8"))?;
            if pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(bad(&name, "is there twice"));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// A value; an empty one is none.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(place).1).filter(|value| !value.is_empty())
    }

    /// A time of RFC 3339. The plus sign of an offset is a space in a query.
    pub(crate) fn time(&mut self, name: &str) -> Result<Option<Time>> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let (start, end) = text.split_at_checked(11).unwrap_or((&text, ""));
        let found = time::parse(&format!("{start}{}", end.replace(' ', "+")));
        found.map(Some).ok_or_else(|| bad(name, "must be a time of RFC 3339, as in 2031-05-06T07:08:09Z"))
    }

    pub(crate) fn integer(&mut self, name: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        let problem = format!("must be a whole number, {} to {}", bounds.start(), bounds.end());
        number.map(Some).ok_or_else(|| bad(name, &problem))
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<()> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(bad(name, "is not known here")))
    }
}

pub(crate) fn bad(name: &str, problem: &str) -> Error {
    let name = shown(name);
    Error::new(Code::Malformed, format!("The parameter {name:?} {problem}.")).field(name)
}

fn decode(text: &str) -> Option<String> {
    let plain = text.replace('+', " ");
    percent_decode_str(&plain).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Failure> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default())?)
    }
}
