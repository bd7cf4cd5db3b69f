//! Why an attempt did not succeed, in six classes that decide what follows, and the sentence for people.

use std::fmt;

use crate::bounds::FAULT_MESSAGE_LEN_MAX;

/// What kind of failure it was. The class alone decides whether it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// Bad input: the call can never succeed as it is.
    Validation,
    /// The credential may not do this.
    Forbidden,
    /// What the call names does not exist.
    NotFound,
    /// The upstream asked to wait.
    RateLimited,
    /// Network, time-out, 5xx: may pass.
    Transient,
    /// The state changed under us: the plan must be made anew.
    Conflict,
}

impl FaultClass {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Validation,
        Self::Forbidden,
        Self::NotFound,
        Self::RateLimited,
        Self::Transient,
        Self::Conflict,
    ];

    /// What the class of an HTTP status is; `None` for a success (2xx) and for what is no answer to a call (1xx, 3xx).
    #[must_use]
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            401 | 403 | 407 => Some(Self::Forbidden),
            404 | 410 => Some(Self::NotFound),
            408 | 425 | 500..=599 => Some(Self::Transient),
            409 | 412 | 423 => Some(Self::Conflict),
            429 => Some(Self::RateLimited),
            400..=499 => Some(Self::Validation),
            _ => None,
        }
    }

    /// Whether the same call may be sent again by itself.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Transient)
    }

    /// The stable word for machines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::RateLimited => "rate_limited",
            Self::Transient => "transient",
            Self::Conflict => "conflict",
        }
    }

    /// The class of a stable word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Stands between what happened last and what an earlier attempt had left.
const BEFORE: &str = "; before that: ";

/// A failure: its class and a sentence. The sentence never holds a secret or a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What follows from it.
    pub class: FaultClass,
    /// What happened, for a person.
    pub message: String,
}

impl Fault {
    /// A fault of `class`; a sentence over the bound is cut at a character.
    #[must_use]
    pub fn new(class: FaultClass, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > FAULT_MESSAGE_LEN_MAX {
            let mut end = FAULT_MESSAGE_LEN_MAX - '…'.len_utf8();
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push('…');
        }
        Self { class, message }
    }

    /// This fault, followed by what an earlier attempt had left: that one may have happened, and must
    /// not be forgotten because the call was throttled, canceled or came too late afterwards. Of
    /// several throttles in a row only the last is kept.
    #[must_use]
    pub fn with_earlier(self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let throttles = [self.class, earlier.class] == [FaultClass::RateLimited; 2];
        let left = match earlier.message.split_once(BEFORE) {
            Some((_, left)) if throttles => left,
            None if throttles => return self,
            _ => &earlier.message,
        };
        Self::new(self.class, format!("{}{BEFORE}{left}", self.message.trim_end_matches('.')))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-10: the class of each status of the table, and what may be repeated.
    #[test]
    fn ops_10_statuses_fall_into_their_classes() {
        let table = [
            (400, FaultClass::Validation),
            (422, FaultClass::Validation),
            (401, FaultClass::Forbidden),
            (403, FaultClass::Forbidden),
            (404, FaultClass::NotFound),
            (429, FaultClass::RateLimited),
            (409, FaultClass::Conflict),
            (500, FaultClass::Transient),
            (503, FaultClass::Transient),
            (599, FaultClass::Transient),
            (408, FaultClass::Transient),
        ];
        for (status, class) in table {
            assert_eq!(FaultClass::of_status(status), Some(class), "{status}");
        }
        for status in [100, 200, 204, 299, 304] {
            assert_eq!(FaultClass::of_status(status), None, "{status}");
        }
        let repeated: Vec<_> = FaultClass::ALL.into_iter().filter(|c| c.is_repeatable()).collect();
        assert_eq!(repeated, [FaultClass::RateLimited, FaultClass::Transient]);
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_character() {
        let fault = Fault::new(FaultClass::Transient, "é".repeat(2_000));
        assert!(fault.message.len() <= FAULT_MESSAGE_LEN_MAX);
        assert!(fault.message.ends_with("é…"));
    }

    /// What an attempt left stays through any number of throttles, and they do not pile up.
    #[test]
    fn an_earlier_fault_is_kept_once() {
        let lost = Fault::new(FaultClass::Transient, "the answer was lost");
        let throttled = |n: u8| Fault::new(FaultClass::RateLimited, format!("429, {n}"));
        assert_eq!(throttled(1).with_earlier(None), throttled(1));
        assert_eq!(throttled(2).with_earlier(Some(&throttled(1))), throttled(2));
        let covered = throttled(2).with_earlier(Some(&throttled(1).with_earlier(Some(&lost))));
        assert_eq!(covered.message, "429, 2; before that: the answer was lost");
        assert_eq!(covered.class, FaultClass::RateLimited);
        let ended = Fault::new(FaultClass::Transient, "called off").with_earlier(Some(&throttled(1)));
        assert_eq!(ended.message, "called off; before that: 429, 1");
    }

    #[test]
    fn words_read_back() {
        for class in FaultClass::ALL {
            assert_eq!(FaultClass::parse(class.as_str()), Some(class));
        }
        assert_eq!(FaultClass::parse("Validation"), None);
    }
}
