//! Why an attempt did not succeed: one of six classes, which decides what follows, and a message
//! for people.

use std::borrow::Cow;
use std::fmt;

use crate::bounds::FAULT_MESSAGE_LEN_MAX;

/// The class of a failure. Only [some](Self::is_repeatable) may pass; what the call may have done
/// by then is another question, which [`RetryRule`](crate::RetryRule) answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// Invalid input: the call can never succeed as it is.
    Validation,
    /// The credential lacks permission.
    Forbidden,
    /// Something that the call names does not exist.
    NotFound,
    /// The upstream asked to wait.
    RateLimited,
    /// Network, timeout, 5xx: may pass.
    Transient,
    /// The state changed concurrently: a new plan is needed.
    Conflict,
}

impl FaultClass {
    /// All classes, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Validation,
        Self::Forbidden,
        Self::NotFound,
        Self::RateLimited,
        Self::Transient,
        Self::Conflict,
    ];

    /// Maps an HTTP status to its class; `None` for a success (2xx) and for statuses that do not
    /// conclude a call (1xx, 3xx).
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

    /// Whether the same call may succeed later, so that sending it again has a point.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Transient)
    }

    /// The stable name for machines.
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

    /// Parses a stable name.
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

/// Separates the latest fault from the one an earlier attempt left.
const BEFORE: &str = "; before that: ";

/// Ends the stored message of a fault that leaves in doubt what happened. It is frozen.
const IN_DOUBT: &str = "; it may have happened";

/// Begins the message of a failure that an operator decided: the outcome of its call was unknown.
/// It is frozen, because stores keep it.
pub const RESOLVED_AS_FAILED: &str = "an operator resolved its unknown outcome as failed";

/// A failure: its class and a message. The message never holds a secret or a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The class, which decides what follows.
    pub class: FaultClass,
    /// What happened, for people.
    pub message: String,
    /// Whether this attempt, or one before it, may have taken effect: a request was sent, and
    /// nothing says what it did.
    pub may_have_happened: bool,
}

impl Fault {
    /// Creates a fault of `class`; a message over the bound is truncated at a character boundary.
    #[must_use]
    pub fn new(class: FaultClass, message: impl Into<String>) -> Self {
        let mut message = message.into();
        // Stored, these words would say that it may have happened.
        while message.ends_with(IN_DOUBT) {
            message.truncate(message.len() - IN_DOUBT.len());
        }
        if message.len() > FAULT_MESSAGE_LEN_MAX {
            let mut end = FAULT_MESSAGE_LEN_MAX - '…'.len_utf8();
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push('…');
        }
        Self { class, message, may_have_happened: false }
    }

    /// Says that the call may have taken effect.
    #[must_use]
    pub const fn in_doubt(mut self) -> Self {
        self.may_have_happened = true;
        self
    }

    /// Replaces the message, which is truncated like that of a new fault.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { may_have_happened: self.may_have_happened, ..Self::new(self.class, message) }
    }

    /// The message as stores keep it: next to the class, and with the doubt in words, so that it
    /// needs no place of its own.
    #[must_use]
    pub fn stored_message(&self) -> Cow<'_, str> {
        if self.may_have_happened {
            Cow::Owned(format!("{}{IN_DOUBT}", self.message))
        } else {
            Cow::Borrowed(&self.message)
        }
    }

    /// Reads a fault from its class and its [stored message](Self::stored_message).
    #[must_use]
    pub fn from_stored(class: FaultClass, mut message: String) -> Self {
        let may_have_happened = message.ends_with(IN_DOUBT);
        if may_have_happened {
            message.truncate(message.len() - IN_DOUBT.len());
        }
        Self { class, message, may_have_happened }
    }

    /// Appends the fault that an earlier attempt left: that attempt may have taken effect, and must
    /// not be forgotten because the call was throttled, canceled or came too late afterwards. Of
    /// several consecutive throttles only the last is kept, and what is said again is said once.
    #[must_use]
    pub fn with_earlier(self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let said = self.message.trim_end_matches('.');
        let is_repeated = earlier.message == self.message
            || earlier.message.strip_prefix(said).is_some_and(|rest| rest.starts_with(BEFORE));
        if is_repeated {
            let may_have_happened = self.may_have_happened || earlier.may_have_happened;
            return Self { may_have_happened, ..Self::new(self.class, &earlier.message) };
        }
        let throttles = [self.class, earlier.class] == [FaultClass::RateLimited; 2];
        let left = match earlier.message.split_once(BEFORE) {
            Some((_, left)) if throttles => left,
            None if throttles => return self,
            _ => &earlier.message,
        };
        let message = format!("{said}{BEFORE}{left}");
        let may_have_happened = self.may_have_happened || earlier.may_have_happened;
        Self { may_have_happened, ..Self::new(self.class, message) }
    }

    /// Keeps the doubt that an earlier attempt left, and what it said: no answer to a later attempt
    /// tells what the earlier one did.
    #[must_use]
    pub fn with_earlier_doubt(self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier.filter(|it| it.may_have_happened && !self.may_have_happened) else {
            return self;
        };
        // What came in between did not bring the doubt.
        let left = earlier.message.split_once(BEFORE).map_or(&*earlier.message, |(_, left)| left);
        let earlier = Self { message: left.to_owned(), ..earlier.clone() };
        self.with_earlier(Some(&earlier))
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

    /// OPS-23: what is said again at each attempt is said once, and what came before it stays.
    #[test]
    fn ops_23_a_repeated_fault_is_said_once() {
        let lost = Fault { may_have_happened: true, ..Fault::new(FaultClass::Transient, "it was cut") };
        let again = || Fault::new(FaultClass::NotFound, "There is no such model.");
        let first = again().with_earlier(Some(&lost));
        assert_eq!(first.message, format!("There is no such model{BEFORE}it was cut"));
        let later = again().with_earlier(Some(&again().with_earlier(Some(&first))));
        assert_eq!((&later.message, later.may_have_happened), (&first.message, true));
        assert_eq!(again().with_earlier(Some(&again())).message, again().message);
    }

    /// OPS-10: the class of each status in the table, and which may be retried.
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

    /// The fault of an attempt survives any number of throttles, and throttles do not pile up.
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

    /// OPS-23: the doubt of an attempt outlasts any answer to a later one, is said once, and is
    /// stored with the message.
    #[test]
    fn ops_23_doubt_stays_whatever_comes_later() {
        let lost = Fault::new(FaultClass::Transient, "the answer was lost").in_doubt();
        let unsent = |n: u8| Fault::new(FaultClass::Transient, format!("not sent, {n}."));
        let refused = Fault::new(FaultClass::NotFound, "404.");
        let ended = refused.clone().with_earlier_doubt(Some(
            &unsent(2).with_earlier_doubt(Some(&unsent(1).with_earlier_doubt(Some(&lost)))),
        ));
        assert_eq!(ended.message, "404; before that: the answer was lost");
        assert_eq!((ended.class, ended.may_have_happened), (FaultClass::NotFound, true));
        assert_eq!(refused.clone().with_earlier_doubt(Some(&unsent(1))), refused);
        assert_eq!(lost.clone().with_earlier_doubt(Some(&ended)), lost);
        let forged = Fault::new(FaultClass::NotFound, "404.; it may have happened; it may have happened");
        assert_eq!(forged, refused, "whoever says so, a message makes no doubt");
        for fault in [ended, refused, lost] {
            let stored = fault.stored_message().into_owned();
            assert_eq!(stored.ends_with("; it may have happened"), fault.may_have_happened);
            assert_eq!(Fault::from_stored(fault.class, stored), fault);
        }
    }

    #[test]
    fn words_read_back() {
        for class in FaultClass::ALL {
            assert_eq!(FaultClass::parse(class.as_str()), Some(class));
        }
        assert_eq!(FaultClass::parse("Validation"), None);
    }
}
