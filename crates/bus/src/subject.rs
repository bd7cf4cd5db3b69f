//! A subject: where a message is published. It is built from tokens and never from text, so that no
//! id can add a token or a wildcard.

use std::fmt;

use tidegate_core::bounds::{SUBJECT_LEN_MAX, SUBJECT_TOKENS_MAX};

use crate::token::{decode, encode};
use crate::{BusError, BusErrorKind};

/// What separates encoded tokens.
pub(crate) const SEPARATOR: char = '.';

/// A subject without wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(String);

impl Subject {
    /// Creates a subject from its tokens, which may contain any text.
    ///
    /// ```
    /// # use tidegate_bus::Subject;
    /// let subject = Subject::new(["tg", "hydration", "acme.com", "order", "unknown"])?;
    /// assert_eq!(subject.as_str(), "tg.hydration.acme%2Ecom.order.unknown");
    /// # Ok::<(), tidegate_bus::BusError>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` without a token, with more than [`SUBJECT_TOKENS_MAX`], or when the encoded
    /// subject is longer than [`SUBJECT_LEN_MAX`].
    pub fn new<T: AsRef<str>>(tokens: impl IntoIterator<Item = T>) -> Result<Self, BusError> {
        let mut text = String::new();
        for token in tokens {
            if !text.is_empty() {
                text.push(SEPARATOR);
            }
            encode(token.as_ref(), &mut text);
        }
        check_bounds(&text)?;
        Ok(Self(text))
    }

    /// Parses the text of a subject. `None` for text that is not a subject's, such as that of a
    /// publisher that does not encode its tokens.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid =
            check_bounds(text).is_ok() && text.split(SEPARATOR).all(|token| decode(token).is_some());
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Its text: encoded tokens with dots in between.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its tokens, decoded.
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        self.encoded_tokens().map(|token| decode(token).unwrap_or_default())
    }

    /// Its tokens as they are in the text.
    pub(crate) fn encoded_tokens(&self) -> impl Iterator<Item = &str> {
        self.0.split(SEPARATOR)
    }
}

/// Checks the bounds of the text of a subject or filter.
pub(crate) fn check_bounds(text: &str) -> Result<(), BusError> {
    let invalid = |message: String| Err(BusError::new(BusErrorKind::Invalid, message));
    let tokens = text.split(SEPARATOR).count();
    if text.is_empty() {
        return invalid("a subject needs at least one token".to_owned());
    }
    if tokens > SUBJECT_TOKENS_MAX {
        return invalid(format!("the subject has {tokens} tokens, at most {SUBJECT_TOKENS_MAX} are allowed"));
    }
    if text.len() > SUBJECT_LEN_MAX {
        return invalid(format!(
            "the subject has {} bytes, at most {SUBJECT_LEN_MAX} are allowed",
            text.len()
        ));
    }
    Ok(())
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// HYD-27: as many tokens as were given, whatever they contain.
        #[test]
        fn a_subject_has_the_tokens_it_was_built_from(tokens in prop::collection::vec(".{0,12}", 1..8)) {
            let subject = Subject::new(&tokens).unwrap();
            prop_assert_eq!(subject.tokens().collect::<Vec<_>>(), tokens);
            prop_assert_eq!(Subject::parse(subject.as_str()), Some(subject));
        }
    }

    #[test]
    fn subjects_are_bounded() {
        let refused = |tokens: &[&str]| Subject::new(tokens).unwrap_err().kind();
        assert_eq!(refused(&[]), BusErrorKind::Invalid);
        assert_eq!(refused(&["a"; SUBJECT_TOKENS_MAX + 1]), BusErrorKind::Invalid);
        assert_eq!(refused(&["é".repeat(SUBJECT_LEN_MAX / 6 + 1).as_str()]), BusErrorKind::Invalid);
        assert!(Subject::new(["a"; SUBJECT_TOKENS_MAX]).is_ok());
        assert!(Subject::new(["a".repeat(SUBJECT_LEN_MAX)]).is_ok());
    }

    #[test]
    fn foreign_text_is_no_subject() {
        for text in ["", ".", "a.", "a..b", "a.*", "a.>", "a b", "$SYS.x", "a.b\r\nPUB", "_INBOX.1"] {
            assert_eq!(Subject::parse(text), None, "{text:?}");
        }
    }
}
