//! Parses the query of a URL strictly: unknown names, duplicate names and values out of bounds are
//! reported by name, all of them at once.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use tidegate_core::Time;
use tidegate_core::bounds::PAGE_ITEMS_MAX;

use crate::error::{Error, ErrorCode, Result};
use crate::wire::object::truncate_name;
use crate::wire::problems::RequestProblems;
use crate::wire::time;

/// The pairs that were not taken yet, and the problems of those that were.
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// The names that were asked for.
    known: Vec<&'static str>,
    problems: RequestProblems,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut pairs, mut problems) = (Vec::<(String, String)>::new(), RequestProblems::default());
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (decode(name), decode(value)) {
                (None, _) => problems.add(bad_parameter("query", "is not UTF-8")),
                (Some(name), None) => problems.add(bad_parameter(&name, "is not UTF-8")),
                (Some(name), _) if pairs.iter().any(|(earlier, _)| *earlier == name) => {
                    problems.add(bad_parameter(&name, "appears twice"));
                }
                (Some(name), Some(value)) => pairs.push((name, value)),
            }
        }
        Self { pairs, known: Vec::new(), problems }
    }

    /// Takes a value. An empty one is a problem: a filter without a value would pass everything.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let place = self.pairs.iter().position(|(known, _)| known == name)?;
        let value = self.pairs.swap_remove(place).1;
        // An empty cursor is the first page, as clients send it that keep one in a variable.
        if value.is_empty() && CURSORS.contains(&name) {
            return None;
        }
        if value.is_empty() {
            self.problems.add(bad_parameter(name, "is empty; give it a value, or leave it out"));
            return None;
        }
        Some(value)
    }

    /// Takes an RFC 3339 time. The plus sign of an offset is a space in a query.
    pub(crate) fn time(&mut self, name: &'static str) -> Option<Time> {
        self.read(name, |text| {
            let (start, end) = text.split_at_checked(11).unwrap_or((text, ""));
            let found = time::parse(&format!("{start}{}", end.replace(' ', "+")));
            found.ok_or_else(|| bad_parameter(name, "must be a time of RFC 3339, as in 2031-05-06T07:08:09Z"))
        })
    }

    /// Takes a value and parses it.
    pub(crate) fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&str) -> Result<T>) -> Option<T> {
        let text = self.take(name)?;
        self.problems.check(read(&text).map(Some))
    }

    /// Takes a whole number within bounds.
    pub(crate) fn integer(&mut self, name: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        self.read(name, |text| {
            let number = text.parse().ok().filter(|number| bounds.contains(number));
            let problem = format!("must be a whole number, {} to {}", bounds.start(), bounds.end());
            number.ok_or_else(|| bad_parameter(name, &problem))
        })
    }

    /// Takes true or false.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, |text| text.parse().map_err(|_| bad_parameter(name, "must be true or false")))
    }

    /// Takes the number of requested items of a list.
    pub(crate) fn limit(&mut self) -> usize {
        let limit = self.integer("limit", 1..=PAGE_ITEMS_MAX).unwrap_or(PAGE_DEFAULT);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// Fails if there were problems or unknown parameters.
    pub(crate) fn finish(mut self) -> Result<()> {
        let known = match self.known.len() {
            0 => "is not known: this call takes none".to_owned(),
            1 => format!("is not known; there is only {}", self.known.join("")),
            _ => format!("is not known; there are {}", self.known.join(", ")),
        };
        for (name, _) in &self.pairs {
            self.problems.add(bad_parameter(name, &known));
        }
        self.problems.finish()
    }
}

/// The names of cursors.
const CURSORS: [&str; 2] = ["cursor", "after"];
const PAGE_DEFAULT: u64 = 50;

pub(crate) fn bad_parameter(name: &str, problem: &str) -> Error {
    let name = truncate_name(name);
    Error::new(ErrorCode::Malformed, format!("The parameter {name:?} {problem}.")).field(name)
}

fn decode(text: &str) -> Option<String> {
    let plain = text.replace('+', " ");
    percent_decode_str(&plain).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter without a value is refused by its name, and so is an unknown one, with those that
    /// there are.
    #[test]
    fn empty_and_unknown_parameters_are_refused_by_name() {
        let mut query = Query::parse("group=&state=failed&per_page=3");
        assert_eq!((query.take("group"), query.take("state").as_deref()), (None, Some("failed")));
        let error = query.finish().unwrap_err();
        assert_eq!(error.message, "The parameter \"group\" is empty; give it a value, or leave it out.");
        assert_eq!(error.also[0].message, "The parameter \"per_page\" is not known; there are group, state.");
        let mut query = Query::parse("wait=1");
        query.take("wait_ms");
        let error = query.finish().unwrap_err();
        assert_eq!(error.message, "The parameter \"wait\" is not known; there is only wait_ms.");
        let none = Query::parse("x=1").finish().unwrap_err();
        assert_eq!(none.message, "The parameter \"x\" is not known: this call takes none.");
    }
}
