//! What a subscription asks for: a subject whose tokens may be wildcards.

use std::fmt;

use crate::subject::{SEPARATOR, check_bounds};
use crate::token::encode;
use crate::{BusError, BusErrorKind, Subject};

/// The text of the wildcard for one token.
const ANY: &str = "*";
/// The text of the wildcard for the rest of a subject.
const REST: &str = ">";

/// One token of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterToken<'a> {
    /// This token and no other. It may contain any text.
    Exact(&'a str),
    /// Exactly one token, whatever it is.
    Any,
    /// One or more tokens, whatever they are; only at the end.
    Rest,
}

impl<'a> From<&'a str> for FilterToken<'a> {
    fn from(token: &'a str) -> Self {
        Self::Exact(token)
    }
}

/// The subjects that a subscription receives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubjectFilter(String);

impl SubjectFilter {
    /// Creates a filter from its tokens.
    ///
    /// ```
    /// # use tidegate_bus::{FilterToken, SubjectFilter};
    /// let filter = SubjectFilter::new(["tg".into(), FilterToken::Any, "updated".into()])?;
    /// assert_eq!(filter.as_str(), "tg.*.updated");
    /// # Ok::<(), tidegate_bus::BusError>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when it exceeds the bounds of a subject, or when `Rest` is not its last token.
    pub fn new<'a>(tokens: impl IntoIterator<Item = FilterToken<'a>>) -> Result<Self, BusError> {
        let mut text = String::new();
        for token in tokens {
            if text.ends_with(REST) {
                return Err(BusError::new(
                    BusErrorKind::Invalid,
                    "only the last token may stand for the rest",
                ));
            }
            if !text.is_empty() {
                text.push(SEPARATOR);
            }
            match token {
                FilterToken::Exact(token) => encode(token, &mut text),
                FilterToken::Any => text.push_str(ANY),
                FilterToken::Rest => text.push_str(REST),
            }
        }
        check_bounds(&text)?;
        Ok(Self(text))
    }

    /// Whether a subject is among those of the filter.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let mut actual = subject.encoded_tokens();
        for wanted in self.0.split(SEPARATOR) {
            match (wanted, actual.next()) {
                (REST, Some(_)) => return true,
                (ANY, Some(_)) => {}
                (exact, Some(token)) if exact == token => {}
                _ => return false,
            }
        }
        actual.next().is_none()
    }

    /// Its text: encoded tokens with dots in between, `*` for one token, `>` for the rest.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Subject> for SubjectFilter {
    fn from(subject: &Subject) -> Self {
        Self(subject.as_str().to_owned())
    }
}

impl fmt::Display for SubjectFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::FilterToken::{Any, Exact, Rest};
    use super::*;

    fn is_match(filter: &[FilterToken<'_>], subject: &[&str]) -> bool {
        SubjectFilter::new(filter.to_vec()).unwrap().matches(&Subject::new(subject).unwrap())
    }

    #[test]
    fn a_filter_compares_token_by_token() {
        assert!(is_match(&[Exact("a"), Exact("b")], &["a", "b"]));
        assert!(!is_match(&[Exact("a"), Exact("b")], &["a", "c"]));
        assert!(!is_match(&[Exact("a")], &["a", "b"]));
        assert!(!is_match(&[Exact("a"), Exact("b")], &["a"]));
        assert!(is_match(&[Exact("a"), Any, Exact("c")], &["a", "b.x", "c"]));
        assert!(!is_match(&[Exact("a"), Any, Exact("c")], &["a", "b", "x", "c"]));
        assert!(is_match(&[Exact("a"), Any], &["a", ""]));
        assert!(!is_match(&[Exact("a"), Any], &["a"]));
        assert!(is_match(&[Exact("a"), Rest], &["a", "b", "c"]));
        assert!(!is_match(&[Exact("a"), Rest], &["a"]));
        assert!(is_match(&[Rest], &["a"]));
    }

    /// HYD-27: a wildcard in an id is text.
    #[test]
    fn an_id_is_never_a_wildcard() {
        assert!(!is_match(&[Exact("*")], &["a"]));
        assert!(!is_match(&[Exact(">")], &["a"]));
        assert!(is_match(&[Exact("*")], &["*"]));
        assert!(!is_match(&[Exact("a.b")], &["a", "b"]));
    }

    #[test]
    fn only_the_last_token_is_the_rest() {
        let refused = SubjectFilter::new([Rest, Exact("a")]).unwrap_err();
        assert_eq!(refused.kind(), BusErrorKind::Invalid);
        assert_eq!(SubjectFilter::new([]).unwrap_err().kind(), BusErrorKind::Invalid);
    }
}
