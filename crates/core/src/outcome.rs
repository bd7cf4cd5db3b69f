//! What a failed call may have done, and what may follow: one table for every dialect, client and
//! proxy. It is documented in `docs/failed-calls.md`.
//!
//! A call that certainly had no effect may be sent again. One that may have had an effect is sent
//! again only where a repeat does no harm; otherwise its outcome is unknown.

use crate::fault::FaultClass;
use crate::operation::OnUnknown;

/// How an attempt to send a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The request was not sent, or the receiver said that it did not process it.
    NotSent,
    /// The request was sent, and the connection broke or timed out before a response began.
    NoAnswer,
    /// A response with this HTTP status came.
    Answered {
        /// The status.
        status: u16,
        /// Whether the response was complete.
        is_complete: bool,
        /// Whether it says how long to wait before the next attempt.
        asks_to_wait: bool,
    },
}

/// The idempotency key of a request, by which its receiver recognizes a repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyUse {
    /// It carries none.
    #[default]
    Absent,
    /// No earlier attempt with it can still be in progress.
    First,
    /// An earlier attempt with it may still be in progress.
    Again,
}

/// What a server error of an upstream means for a request that must not take effect twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerErrors {
    /// It had no effect, and is sent again.
    #[default]
    Retry,
    /// It may have had an effect.
    Unknown,
}

impl ServerErrors {
    /// Parses a stable name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "retry" => Some(Self::Retry),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }
}

/// What may follow an attempt: the class of its [`Verdict`](crate::Verdict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictClass {
    /// It succeeded.
    Done,
    /// The receiver asks to wait; it had no effect.
    Throttled,
    /// It had no effect, or none that a repeat would double: it may be sent again.
    Retry,
    /// It was refused, and would be refused again.
    Rejected,
    /// It may have had an effect, and a repeat might double it.
    Unknown,
}

/// The rule by which one request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// Whether a repeat does no harm: the request only reads, describes a final state, or carries a
    /// key by which the receiver recognizes it.
    pub is_repeatable: bool,
    /// What a server error means otherwise.
    pub server_errors: ServerErrors,
    /// Its idempotency key.
    pub key: KeyUse,
}

impl RetryRule {
    /// Creates the rule of a request with this answer to an unknown outcome: what may be repeated
    /// then may always be.
    #[must_use]
    pub const fn new(on_unknown: OnUnknown, server_errors: ServerErrors) -> Self {
        let is_repeatable = matches!(on_unknown, OnUnknown::Repeat);
        Self { is_repeatable, server_errors, key: KeyUse::Absent }
    }

    /// Sets the idempotency key that the request carries.
    #[must_use]
    pub const fn with_key(mut self, key: KeyUse) -> Self {
        self.key = key;
        self
    }

    /// Decides what may follow an attempt.
    #[must_use]
    pub const fn classify(self, end: AttemptEnd) -> VerdictClass {
        let (status, is_complete, asks_to_wait) = match end {
            AttemptEnd::NotSent => return VerdictClass::Retry,
            AttemptEnd::NoAnswer => return self.in_doubt(),
            AttemptEnd::Answered { status, is_complete, asks_to_wait } => (status, is_complete, asks_to_wait),
        };
        match StatusClass::of(status, asks_to_wait) {
            StatusClass::Success if is_complete => VerdictClass::Done,
            StatusClass::Success => self.in_doubt(),
            StatusClass::Refusal if status == 409 && self.has_key_in_use(asks_to_wait) => VerdictClass::Retry,
            StatusClass::Refusal => VerdictClass::Rejected,
            StatusClass::RateLimit => VerdictClass::Throttled,
            StatusClass::NotProcessed => VerdictClass::Retry,
            StatusClass::ServerError | StatusClass::GatewayError => match self.server_errors {
                ServerErrors::Retry => VerdictClass::Retry,
                ServerErrors::Unknown => self.in_doubt(),
            },
        }
    }

    /// Whether the request may have taken effect, whether or not it may be sent again: nothing says
    /// what it did.
    #[must_use]
    pub const fn may_have_happened(self, end: AttemptEnd) -> bool {
        let (status, is_complete, asks_to_wait) = match end {
            AttemptEnd::NotSent => return false,
            AttemptEnd::NoAnswer => return true,
            AttemptEnd::Answered { status, is_complete, asks_to_wait } => (status, is_complete, asks_to_wait),
        };
        match StatusClass::of(status, asks_to_wait) {
            StatusClass::Success => !is_complete,
            // A service that did what it was asked for often says where to look.
            StatusClass::Refusal if matches!(status, 302 | 303) => !self.is_repeatable,
            StatusClass::Refusal => status == 409 && self.has_key_in_use(asks_to_wait),
            StatusClass::RateLimit | StatusClass::NotProcessed => false,
            StatusClass::ServerError => matches!(self.server_errors, ServerErrors::Unknown),
            StatusClass::GatewayError => true,
        }
    }

    /// Whether a 409 says that the receiver still works on an earlier request with the same key.
    const fn has_key_in_use(self, asks_to_wait: bool) -> bool {
        match self.key {
            KeyUse::Absent => false,
            KeyUse::First => asks_to_wait,
            KeyUse::Again => true,
        }
    }

    /// What follows an attempt that may have had an effect.
    const fn in_doubt(self) -> VerdictClass {
        if self.is_repeatable { VerdictClass::Retry } else { VerdictClass::Unknown }
    }
}

/// What is known of the effect of a request that carries an idempotency key, and what thus becomes
/// of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeClass {
    /// There was no effect.
    NotStarted,
    /// The response says what happened.
    Answered,
    /// The request may or may not have taken effect.
    Unknown,
}

impl OutcomeClass {
    /// Classifies an attempt. The service behind the key answers for itself: a failure that it
    /// reports is an answer, and only a gateway that got none does not know either.
    #[must_use]
    pub const fn of(end: AttemptEnd) -> Self {
        let (status, is_complete) = match end {
            AttemptEnd::NotSent => return Self::NotStarted,
            AttemptEnd::NoAnswer => return Self::Unknown,
            AttemptEnd::Answered { status, is_complete, .. } => (status, is_complete),
        };
        match StatusClass::of(status, false) {
            StatusClass::GatewayError => Self::Unknown,
            StatusClass::Success if !is_complete => Self::Unknown,
            _ => Self::Answered,
        }
    }
}

/// What a status says about the effect of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusClass {
    /// It took effect.
    Success,
    /// It was refused for a reason that stays: most 4xx, and what does not conclude a call.
    Refusal,
    /// It came too soon.
    RateLimit,
    /// It was not processed: the receiver was not ready (408, 425, 503), or a CDN could not connect
    /// to it (521 refused, 523 unreachable, 525 and 526 no TLS).
    NotProcessed,
    /// The receiver failed, and does not say how far it came.
    ServerError,
    /// A gateway passed it on and got no proper response: 502 and 504, and what a CDN uses instead
    /// (520 no proper response, 522 and 524 none in time).
    GatewayError,
}

impl StatusClass {
    /// A 403 that says how long to wait is a rate limit, as some services send it.
    const fn of(status: u16, asks_to_wait: bool) -> Self {
        match FaultClass::of_status(status) {
            Some(_) if status == 403 && asks_to_wait => Self::RateLimit,
            None if matches!(status, 200..=299) => Self::Success,
            None => Self::Refusal,
            Some(class) if !class.is_repeatable() => Self::Refusal,
            Some(FaultClass::RateLimited) => Self::RateLimit,
            Some(_) => match status {
                408 | 425 | 503 | 521 | 523 | 525 | 526 => Self::NotProcessed,
                502 | 504 | 520 | 522 | 524 => Self::GatewayError,
                _ => Self::ServerError,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answered(status: u16) -> AttemptEnd {
        AttemptEnd::Answered { status, is_complete: true, asks_to_wait: false }
    }

    const fn waiting(status: u16) -> AttemptEnd {
        AttemptEnd::Answered { status, is_complete: true, asks_to_wait: true }
    }

    const fn half(status: u16) -> AttemptEnd {
        AttemptEnd::Answered { status, is_complete: false, asks_to_wait: false }
    }

    /// OPS-10, OPS-23: every row of the table in `docs/failed-calls.md`: what follows for a request
    /// that may be repeated, for one that may not where server errors are retried, and where they
    /// are unknown.
    #[test]
    fn ops_23_what_follows_each_end_of_a_call() {
        use VerdictClass::{Done, Rejected, Retry, Throttled, Unknown};
        let table: [(&[AttemptEnd], [VerdictClass; 3]); 9] = [
            (&[AttemptEnd::NotSent], [Retry; 3]),
            (&[AttemptEnd::NoAnswer, half(200), half(204)], [Retry, Unknown, Unknown]),
            (&[answered(200), answered(201), answered(299)], [Done; 3]),
            (&[answered(429), half(429), waiting(429), waiting(403)], [Throttled; 3]),
            (
                &[answered(408), answered(425), answered(503), answered(521), answered(523), half(503)],
                [Retry; 3],
            ),
            (&[answered(525), answered(526)], [Retry; 3]),
            (
                &[
                    answered(500),
                    answered(502),
                    answered(504),
                    answered(520),
                    answered(522),
                    answered(524),
                    answered(501),
                    answered(507),
                    answered(529),
                    answered(599),
                    half(500),
                ],
                [Retry, Retry, Unknown],
            ),
            (
                &[answered(301), half(302), answered(400), answered(404), answered(409), half(422)],
                [Rejected; 3],
            ),
            (&[answered(403), waiting(409), waiting(401), waiting(422)], [Rejected; 3]),
        ];
        for (ends, expected) in table {
            for end in ends {
                let follows = [
                    (OnUnknown::Repeat, ServerErrors::Unknown),
                    (OnUnknown::Ask, ServerErrors::Retry),
                    (OnUnknown::Reconcile, ServerErrors::Unknown),
                ]
                .map(|(on_unknown, errors)| RetryRule::new(on_unknown, errors).classify(*end));
                assert_eq!(follows, expected, "{end:?}");
            }
        }
    }

    /// OPS-23: a 409 to a request with a key is no conflict while an earlier request with that key
    /// may be in progress: when one was sent, or when the receiver says how long to wait.
    #[test]
    fn ops_23_a_key_in_use_is_waited_for() {
        use VerdictClass::{Rejected, Retry};
        let rule = RetryRule::new(OnUnknown::Repeat, ServerErrors::Retry);
        let table = [
            (KeyUse::Absent, [Rejected, Rejected]),
            (KeyUse::First, [Rejected, Retry]),
            (KeyUse::Again, [Retry, Retry]),
        ];
        for (key, expected) in table {
            let rule = rule.with_key(key);
            assert_eq!([answered(409), waiting(409)].map(|end| rule.classify(end)), expected, "{key:?}");
            assert_eq!([412, 423].map(|status| rule.classify(waiting(status))), [Rejected; 2], "{key:?}");
        }
    }

    /// OPS-23: what may have taken effect, whatever may follow.
    #[test]
    fn ops_23_what_may_have_happened() {
        let once = RetryRule::new(OnUnknown::Ask, ServerErrors::Retry);
        let strict = RetryRule::new(OnUnknown::Repeat, ServerErrors::Unknown);
        let doubts = |rule: RetryRule, end| rule.may_have_happened(end);
        for rule in [once, strict] {
            for end in [AttemptEnd::NoAnswer, half(200), answered(502), answered(504), answered(524)] {
                assert!(doubts(rule, end), "{end:?}");
            }
            for end in [AttemptEnd::NotSent, answered(200), answered(404), answered(409), answered(503)] {
                assert!(!doubts(rule, end), "{end:?}");
            }
            assert!(!doubts(rule, waiting(429)) && !doubts(rule, waiting(403)));
        }
        assert!(!doubts(once, answered(500)) && doubts(strict, answered(500)));
        assert!(doubts(once.with_key(KeyUse::Again), answered(409)));
        for status in [302, 303] {
            assert!(doubts(once, answered(status)) && !doubts(strict, answered(status)), "{status}");
        }
        assert!([301, 307, 308].iter().all(|status| !doubts(once, answered(*status))));
        // Whatever is unknown may have happened.
        for status in 100..600 {
            for end in [AttemptEnd::NotSent, AttemptEnd::NoAnswer, answered(status), half(status)] {
                let rule = RetryRule::new(OnUnknown::Ask, ServerErrors::Unknown);
                assert!(rule.classify(end) != VerdictClass::Unknown || doubts(rule, end), "{end:?}");
            }
        }
    }

    /// Where a repeat does no harm, the setting changes nothing.
    #[test]
    fn a_repeatable_request_is_never_in_doubt() {
        for status in 100..600 {
            for end in [AttemptEnd::NotSent, AttemptEnd::NoAnswer, answered(status), half(status)] {
                let [one, other] = [ServerErrors::Retry, ServerErrors::Unknown]
                    .map(|errors| RetryRule::new(OnUnknown::Repeat, errors).classify(end));
                assert!(one == other && one != VerdictClass::Unknown, "{end:?}");
            }
        }
    }

    /// IDM-18: what a gateway could not find out is unknown; what a service reports itself is not.
    #[test]
    fn a_gateway_without_an_answer_leaves_the_outcome_unknown() {
        for end in [AttemptEnd::NoAnswer, answered(502), answered(504), answered(524)] {
            assert_eq!(OutcomeClass::of(end), OutcomeClass::Unknown, "{end:?}");
        }
        for status in [200, 201, 303, 400, 408, 429, 500, 503, 521] {
            assert_eq!(OutcomeClass::of(answered(status)), OutcomeClass::Answered, "{status}");
        }
        assert_eq!(OutcomeClass::of(AttemptEnd::NotSent), OutcomeClass::NotStarted);
    }

    /// IDM-18: half of a success is no success; half of a refusal is a refusal.
    #[test]
    fn half_an_answer_is_known_by_its_status_only_when_it_refuses() {
        assert_eq!(OutcomeClass::of(half(200)), OutcomeClass::Unknown);
        assert_eq!([400, 500].map(|status| OutcomeClass::of(half(status))), [OutcomeClass::Answered; 2]);
    }

    #[test]
    fn the_setting_reads_its_words() {
        assert_eq!(ServerErrors::parse("retry"), Some(ServerErrors::Retry));
        assert_eq!(ServerErrors::parse("unknown"), Some(ServerErrors::Unknown));
        assert_eq!(ServerErrors::parse("Retry"), None);
    }
}
