//! What is chosen for a layer or a route: how long, which methods, what is kept, and what happens when the outcome is unknown,
//! the key is in work, or the store is away. Every figure has a bound.

use std::time::Duration;

use http::{Method, StatusCode};
use tidegate_core::shared::record::OnLapse;

use crate::key::{KeyAlphabet, KeyForm};

/// The choices. `Policy::default()` is what the documentation describes.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How long an answer is kept, from the request on.
    pub ttl: Duration,
    /// How long a key stays blocked after the process that worked on it died.
    pub lease: Duration,
    /// How long a handler may work before its key is no longer kept for it.
    pub run_max: Duration,
    /// How long a step of the store may take.
    pub store_patience: Duration,
    /// The methods it is for.
    pub methods: Vec<Method>,
    /// Whether a request of those methods must have a key.
    pub required: bool,
    /// What a repeat gets while the first one is in work.
    pub in_flight: InFlightPolicy,
    /// What becomes of a key whose request may or may not have been done.
    pub on_unknown: UnknownOutcomePolicy,
    /// Whether an answer of 400 to 499 is kept; some of them never are (`is_kept`).
    pub keep_client_errors: bool,
    /// Whether an answer of 500 and above is kept.
    pub keep_server_errors: bool,
    /// How refusals look.
    pub dialect: RefusalDialect,
    /// Which characters a key may have.
    pub key_alphabet: KeyAlphabet,
    /// How the bodies of two requests are compared.
    pub fingerprint: BodyComparison,
    /// What happens to a request with a key when the store is away.
    pub store_unavailable: StoreUnavailablePolicy,
    /// Bytes of the largest request body with a key.
    pub request_max: usize,
    /// Bytes that a client must send of such a body each second, measured over 10 seconds; 0 for no such rate.
    pub body_rate_min: usize,
    /// Bytes of the largest answer body that is kept; a larger one is passed on and cannot be repeated.
    pub answer_max: usize,
}

/// What a repeat gets while the first one is in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightPolicy {
    /// 409 at once.
    Reject,
    /// The first one's answer, or 409 when that takes longer than this.
    Wait(Duration),
}

/// What becomes of a key whose request was sent on and whose answer never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownOutcomePolicy {
    /// It is free again.
    Release,
    /// It is held until it expires: 409 `IDEMPOTENCY_OUTCOME_UNKNOWN`.
    Hold,
}

/// How refusals look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalDialect {
    /// 409 for another body; `{"detail","error_code","idempotency_key"}`.
    Tidegate,
    /// 422 for another body; `application/problem+json`; a key in quotes is a structured-field string.
    Ietf,
}

/// How the bodies of two requests are compared. Multipart bodies always are by their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyComparison {
    /// Byte for byte.
    Bytes,
    /// JSON by value: the order of members, white space and the spelling of numbers do not count.
    Json,
}

/// What happens to a request with a key when the store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUnavailablePolicy {
    /// 503: this try was not handled; it may be repeated.
    Refuse,
    /// It passes without protection, and its answer says so.
    PassOn,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3_600),
            lease: Duration::from_secs(30),
            run_max: Duration::from_secs(15 * 60),
            store_patience: Duration::from_secs(2),
            methods: vec![Method::POST],
            required: false,
            in_flight: InFlightPolicy::Reject,
            on_unknown: UnknownOutcomePolicy::Release,
            keep_client_errors: false,
            keep_server_errors: false,
            dialect: RefusalDialect::Tidegate,
            key_alphabet: KeyAlphabet::Plain,
            fingerprint: BodyComparison::Bytes,
            store_unavailable: StoreUnavailablePolicy::Refuse,
            request_max: 8 << 20,
            body_rate_min: 1 << 10,
            answer_max: 1 << 20,
        }
    }
}

/// A figure that is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` must be between {least} and {most}")]
pub struct PolicyError {
    /// Its name.
    pub what: &'static str,
    least: &'static str,
    most: &'static str,
}

impl Policy {
    /// Whether every figure is within its bounds.
    ///
    /// # Errors
    /// Names the first that is not, and its bounds.
    pub fn check(&self) -> Result<(), PolicyError> {
        let seconds = |from: u64, to: u64| Duration::from_secs(from)..=Duration::from_secs(to);
        let wait = match self.in_flight {
            InFlightPolicy::Reject => Duration::from_secs(1),
            InFlightPolicy::Wait(wait) => wait,
        };
        let day = 24 * 3_600;
        let figures = [
            ("ttl", seconds(1, 90 * day).contains(&self.ttl), "1 second", "90 days"),
            ("lease", seconds(1, 3_600).contains(&self.lease), "1 second", "1 hour"),
            ("run_max", seconds(1, day).contains(&self.run_max), "1 second", "1 day"),
            (
                "store_patience",
                (Duration::from_millis(10)..=Duration::from_secs(60)).contains(&self.store_patience),
                "10 milliseconds",
                "1 minute",
            ),
            (
                "wait",
                (Duration::from_millis(1)..=Duration::from_secs(600)).contains(&wait),
                "1 millisecond",
                "10 minutes",
            ),
            ("request_max", (1..=1 << 30).contains(&self.request_max), "1 byte", "1 GiB"),
            ("body_rate_min", (0..=1 << 30).contains(&self.body_rate_min), "0 bytes", "1 GiB"),
            ("answer_max", (1..=256 << 20).contains(&self.answer_max), "1 byte", "256 MiB"),
        ];
        match figures.into_iter().find(|(_, is_within, ..)| !is_within) {
            Some((what, _, least, most)) => Err(PolicyError { what, least, most }),
            None => Ok(()),
        }
    }

    /// Whether an answer with this status is kept. One that says "not now" or "not you" never is: the same request may
    /// fare otherwise a moment later.
    #[must_use]
    pub fn is_kept(&self, status: StatusCode) -> bool {
        match status.as_u16() {
            401 | 403 | 408 | 425 | 429 => false,
            200..=399 => true,
            400..=499 => self.keep_client_errors,
            500..=599 => self.keep_server_errors,
            _ => false,
        }
    }

    pub(crate) fn key_form(&self) -> KeyForm {
        KeyForm { alphabet: self.key_alphabet, is_structured: self.dialect == RefusalDialect::Ietf }
    }

    pub(crate) fn on_lapse(&self) -> OnLapse {
        match self.on_unknown {
            UnknownOutcomePolicy::Release => OnLapse::TakeOver,
            UnknownOutcomePolicy::Hold => OnLapse::Hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-3: answers that failed are not kept, unless chosen; what says "not now" never is.
    #[test]
    fn what_is_kept_is_chosen_by_class() {
        let kept = |policy: &Policy, status| policy.is_kept(StatusCode::from_u16(status).unwrap());
        let usual = Policy::default();
        assert!([200, 201, 204, 303].iter().all(|status| kept(&usual, *status)));
        assert!([101, 400, 404, 422, 429, 500, 503].iter().all(|status| !kept(&usual, *status)));
        let all = Policy { keep_client_errors: true, keep_server_errors: true, ..Policy::default() };
        assert!([400, 404, 409, 422, 500, 503].iter().all(|status| kept(&all, *status)));
        assert!([401, 403, 408, 425, 429].iter().all(|status| !kept(&all, *status)));
    }

    #[test]
    fn figures_have_bounds() {
        assert_eq!(Policy::default().check(), Ok(()));
        let wrong = Policy { ttl: Duration::ZERO, ..Policy::default() }.check().unwrap_err();
        assert_eq!(wrong.to_string(), "`ttl` must be between 1 second and 90 days");
        assert!(
            Policy { in_flight: InFlightPolicy::Wait(Duration::MAX), ..Policy::default() }.check().is_err()
        );
        assert!(Policy { answer_max: 0, ..Policy::default() }.check().is_err());
    }
}
