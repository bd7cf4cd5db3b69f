//! Classifies whether a request took effect, as far as its sender can tell: one rule for every
//! dialect and every proxy. A gateway that reports no response does not know either.

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
    },
}

/// What the sender knows about the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeClass {
    /// There was no effect, or none that a repeat would double.
    NotStarted,
    /// The response says what happened.
    Answered,
    /// The request may or may not have taken effect.
    Unknown,
}

/// Classifies an attempt. `is_repeatable` says that a repeat does no harm: the request only reads,
/// or the receiver recognizes it by a key.
#[must_use]
pub const fn classify(end: AttemptEnd, is_repeatable: bool) -> OutcomeClass {
    let is_unknown = match end {
        AttemptEnd::NotSent => return OutcomeClass::NotStarted,
        AttemptEnd::NoAnswer => true,
        AttemptEnd::Answered { status, is_complete } => {
            is_ambiguous_gateway_status(status) || !is_complete && status < 400
        }
    };
    match (is_unknown, is_repeatable) {
        (false, _) => OutcomeClass::Answered,
        (true, true) => OutcomeClass::NotStarted,
        (true, false) => OutcomeClass::Unknown,
    }
}

/// Whether a gateway uses this status to say that it passed the request on and got no proper
/// response: 502 and 504, and what a large CDN uses instead (520 no proper response, 522 and 524
/// none in time).
const fn is_ambiguous_gateway_status(status: u16) -> bool {
    matches!(status, 502 | 504 | 520 | 522 | 524)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answered(status: u16) -> AttemptEnd {
        AttemptEnd::Answered { status, is_complete: true }
    }

    /// IDM-18: what a gateway could not find out is unknown; what a service reports itself is not.
    #[test]
    fn a_gateway_without_an_answer_leaves_the_outcome_unknown() {
        for end in [AttemptEnd::NoAnswer, answered(502), answered(504), answered(524)] {
            assert_eq!(classify(end, false), OutcomeClass::Unknown, "{end:?}");
            assert_eq!(classify(end, true), OutcomeClass::NotStarted, "{end:?}: a repeat does no harm");
        }
        for status in [200, 201, 303, 400, 408, 429, 500, 503, 521] {
            assert_eq!(classify(answered(status), false), OutcomeClass::Answered, "{status}");
        }
        assert_eq!(classify(AttemptEnd::NotSent, false), OutcomeClass::NotStarted);
    }

    /// IDM-18: half of a success is no success; half of a refusal is a refusal.
    #[test]
    fn half_an_answer_is_known_by_its_status_only_when_it_refuses() {
        let half = |status| classify(AttemptEnd::Answered { status, is_complete: false }, false);
        assert_eq!([half(200), half(302)], [OutcomeClass::Unknown; 2]);
        assert_eq!([half(400), half(500)], [OutcomeClass::Answered; 2]);
    }
}
