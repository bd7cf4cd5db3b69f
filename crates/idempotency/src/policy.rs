//! The policy of a layer or a route: durations, methods, what is saved, and what happens when the
//! outcome is unknown, the key is in flight, or the store is unavailable. Every value has bounds.

use std::borrow::Cow;
use std::time::Duration;

use http::{Method, StatusCode};
use tidegate_core::shared::record::OnLapse;
use tidegate_core::url_path::{literal, normalized};

use crate::key::{KeyAlphabet, KeyForm};

/// The settings. `Policy::default()` is what the documentation describes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// How long a response is kept, counted from the request.
    pub ttl: Duration,
    /// How long a key stays blocked after the process that worked on it died.
    pub lease: Duration,
    /// How long a handler may run before its claim is no longer renewed.
    pub run_max: Duration,
    /// How long a store operation may take.
    pub store_patience: Duration,
    /// The methods that the policy applies to.
    pub methods: Vec<Method>,
    /// Whether a request with one of those methods must have a key.
    pub required: bool,
    /// What a retry gets while the first request is in flight.
    pub in_flight: InFlightPolicy,
    /// What happens to a key whose request may or may not have been executed.
    pub on_unknown: UnknownOutcomePolicy,
    /// Whether a response of 400 to 499 is saved; some of them never are (`is_kept`).
    pub keep_client_errors: bool,
    /// Whether a response of 500 and above is saved.
    pub keep_server_errors: bool,
    /// The format of error responses.
    pub dialect: RefusalDialect,
    /// The characters that a key may contain.
    pub key_alphabet: KeyAlphabet,
    /// How the bodies of two requests are compared.
    pub fingerprint: BodyComparison,
    /// How the paths of two requests are compared.
    pub paths: PathComparison,
    /// What happens to a request with a key when the store is unavailable.
    pub store_unavailable: StoreUnavailablePolicy,
    /// The largest request body with a key, in bytes.
    pub request_max: usize,
    /// The bytes that a client must send of such a body each second, measured over 10 seconds; 0
    /// for no minimum.
    pub body_rate_min: usize,
    /// The largest response body that is saved, in bytes; a larger one is passed on and cannot be
    /// replayed.
    pub answer_max: usize,
}

/// What a retry gets while the first request is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightPolicy {
    /// 409 at once.
    Reject,
    /// The first request's response, or 409 when that takes longer than this.
    Wait(Duration),
}

/// What happens to a key whose request was sent and whose response never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownOutcomePolicy {
    /// The key is free again.
    Release,
    /// The key is held until it expires: 409 `IDEMPOTENCY_OUTCOME_UNKNOWN`.
    Hold,
}

/// The format of error responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalDialect {
    /// 409 for another body; `{"detail","error_code","idempotency_key"}`.
    Tidegate,
    /// 422 for another body; `application/problem+json`; a key in quotes is a structured-field
    /// string.
    Ietf,
}

/// How the bodies of two requests are compared. Multipart bodies are always compared by their
/// parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyComparison {
    /// Byte for byte.
    Bytes,
    /// JSON by value: the order of members, white space and the spelling of numbers do not count.
    Json,
}

/// How the paths of two requests are compared. Needless percent-encoding never counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathComparison {
    /// After empty segments, `.` and `..` are resolved, as most services do.
    Resolved,
    /// Segment by segment, as they were sent, for services in which `a//b` and `a/b` are different
    /// names.
    Literal,
}

impl PathComparison {
    /// The spelling under which a path is compared.
    pub(crate) fn spelling(self, path: &str) -> Cow<'_, str> {
        match self {
            Self::Resolved => normalized(path),
            Self::Literal => literal(path),
        }
    }
}

/// What happens to a request with a key when the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUnavailablePolicy {
    /// 503: this attempt was not handled; it may be retried.
    Refuse,
    /// The request passes without protection, and its response says so.
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
            paths: PathComparison::Resolved,
            store_unavailable: StoreUnavailablePolicy::Refuse,
            request_max: 8 << 20,
            body_rate_min: 1 << 10,
            answer_max: 1 << 20,
        }
    }
}

impl Policy {
    /// Sets how long a response is kept; 1 hour by default.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long a key stays blocked after its process died; 30 s by default.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long a handler may run; 15 minutes by default.
    #[must_use]
    pub fn with_run_max(mut self, run_max: Duration) -> Self {
        self.run_max = run_max;
        self
    }

    /// Sets how long a store operation may take; 2 s by default.
    #[must_use]
    pub fn with_store_patience(mut self, store_patience: Duration) -> Self {
        self.store_patience = store_patience;
        self
    }

    /// Sets the methods that the policy applies to; POST by default.
    #[must_use]
    pub fn with_methods(mut self, methods: Vec<Method>) -> Self {
        self.methods = methods;
        self
    }

    /// Sets whether a request with one of those methods must have a key.
    #[must_use]
    pub fn with_required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets what a retry gets while the first request is in flight.
    #[must_use]
    pub fn with_in_flight(mut self, in_flight: InFlightPolicy) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Sets what happens to a key whose outcome is unknown.
    #[must_use]
    pub fn with_on_unknown(mut self, on_unknown: UnknownOutcomePolicy) -> Self {
        self.on_unknown = on_unknown;
        self
    }

    /// Sets whether a response of 400 to 499 is saved.
    #[must_use]
    pub fn with_keep_client_errors(mut self, keep_client_errors: bool) -> Self {
        self.keep_client_errors = keep_client_errors;
        self
    }

    /// Sets whether a response of 500 and above is saved.
    #[must_use]
    pub fn with_keep_server_errors(mut self, keep_server_errors: bool) -> Self {
        self.keep_server_errors = keep_server_errors;
        self
    }

    /// Sets the format of error responses.
    #[must_use]
    pub fn with_dialect(mut self, dialect: RefusalDialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the characters that a key may contain.
    #[must_use]
    pub fn with_key_alphabet(mut self, key_alphabet: KeyAlphabet) -> Self {
        self.key_alphabet = key_alphabet;
        self
    }

    /// Sets how the bodies of two requests are compared.
    #[must_use]
    pub fn with_fingerprint(mut self, fingerprint: BodyComparison) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Sets how the paths of two requests are compared.
    #[must_use]
    pub fn with_paths(mut self, paths: PathComparison) -> Self {
        self.paths = paths;
        self
    }

    /// Sets what happens when the store is unavailable.
    #[must_use]
    pub fn with_store_unavailable(mut self, store_unavailable: StoreUnavailablePolicy) -> Self {
        self.store_unavailable = store_unavailable;
        self
    }

    /// Sets the largest request body with a key, in bytes; 8 MiB by default.
    #[must_use]
    pub fn with_request_max(mut self, request_max: usize) -> Self {
        self.request_max = request_max;
        self
    }

    /// Sets the bytes of a body that a client must send each second.
    #[must_use]
    pub fn with_body_rate_min(mut self, body_rate_min: usize) -> Self {
        self.body_rate_min = body_rate_min;
        self
    }

    /// Sets the largest response body that is saved, in bytes; 1 MiB by default.
    #[must_use]
    pub fn with_answer_max(mut self, answer_max: usize) -> Self {
        self.answer_max = answer_max;
        self
    }
}

/// A value that is out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` must be between {least} and {most}")]
pub struct PolicyError {
    /// The name of the setting.
    pub what: &'static str,
    least: &'static str,
    most: &'static str,
}

impl Policy {
    /// Checks that every value is within its bounds.
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

    /// Returns whether a response with this status is saved. One that says "not now" or "not you"
    /// never is: the same request may succeed a moment later.
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

    /// IDM-3: failed responses are not saved unless configured; those that say "not now" never are.
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
