//! Error responses of the layer, in two dialects. The bodies of the Tidegate dialect are fixed to
//! the letter. None of them contains anything of a request but its key.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::body::{CollectedBody, LayerBody};
use crate::counters::Event;
use crate::fingerprint::Differences;
use crate::key::{KeyAlphabet, KeyForm};
use crate::policy::RefusalDialect;

/// The `Retry-After` seconds for a request in flight.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// A header that suggests a remedy, next to a body that is fixed.
const HINT: HeaderName = HeaderName::from_static("idempotency-hint");

/// The header with the code of an error that comes from Tidegate and not from a service behind it.
pub(crate) const ERROR: HeaderName = HeaderName::from_static("x-tidegate-error");

/// Why a request is not handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed {
        form: KeyForm,
        /// Whether it is a valid key where any printable character is allowed.
        is_printable: bool,
        /// Whether the header was sent more than once.
        is_repeated: bool,
    },
    Missing,
    /// The header that would have identified the caller, if one is configured.
    NoScope(Option<HeaderName>),
    /// The bytes that a body may have.
    BodyTooLarge(usize),
    BodyBroken,
    /// The body came more slowly than the minimum rate.
    BodyTooSlow,
    /// Other bodies use all the memory for request bodies.
    NoRoom,
    /// The key belongs to another request, which differs in these parts.
    Conflict(Differences),
    Processing,
    OutcomeUnknown,
    NotReplayable,
    AnswerDamaged,
    AnswerBroken,
    StoreUnavailable,
    Panicked,
}

impl Refusal {
    pub(crate) fn status(&self, dialect: RefusalDialect) -> StatusCode {
        match self {
            Self::Malformed { .. } | Self::Missing | Self::NoScope(_) | Self::BodyBroken => {
                StatusCode::BAD_REQUEST
            }
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict(_) if dialect == RefusalDialect::Ietf => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Conflict(_) | Self::Processing | Self::OutcomeUnknown | Self::NotReplayable => {
                StatusCode::CONFLICT
            }
            Self::AnswerDamaged | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::AnswerBroken => StatusCode::BAD_GATEWAY,
            Self::StoreUnavailable | Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "INVALID_IDEMPOTENCY_KEY",
            Self::Missing => "IDEMPOTENCY_KEY_REQUIRED",
            Self::NoScope(_) => "IDEMPOTENCY_SCOPE_MISSING",
            Self::BodyTooLarge(_) => "IDEMPOTENCY_BODY_TOO_LARGE",
            Self::BodyBroken => "IDEMPOTENCY_BODY_INCOMPLETE",
            Self::BodyTooSlow => "IDEMPOTENCY_BODY_TOO_SLOW",
            Self::NoRoom => "IDEMPOTENCY_BODIES_FULL",
            Self::Conflict(_) => "IDEMPOTENCY_KEY_CONFLICT",
            Self::Processing => "IDEMPOTENCY_KEY_PROCESSING",
            Self::OutcomeUnknown => "IDEMPOTENCY_OUTCOME_UNKNOWN",
            Self::NotReplayable => "IDEMPOTENCY_ANSWER_NOT_REPLAYABLE",
            Self::AnswerDamaged => "IDEMPOTENCY_ANSWER_DAMAGED",
            Self::AnswerBroken => "IDEMPOTENCY_ANSWER_BROKEN",
            Self::StoreUnavailable => "IDEMPOTENCY_UNAVAILABLE",
            Self::Panicked => "IDEMPOTENCY_HANDLER_FAILED",
        }
    }

    fn detail(&self) -> Cow<'static, str> {
        let fixed = match self {
            Self::NoScope(Some(header)) => {
                return format!(
                    "A request with an idempotency key must say who sends it, in one {header} header"
                )
                .into();
            }
            Self::BodyTooLarge(most) => {
                return format!("A request with an idempotency key may have a body of at most {most} bytes; this one is larger").into();
            }
            Self::Conflict(differences) if differences.has_same_body() => {
                return format!("Idempotency key already used with another {differences}").into();
            }
            Self::Malformed { is_repeated: true, .. } => {
                "Invalid idempotency key format. The Idempotency-Key header was sent more than once"
            }
            Self::Malformed { form: KeyForm { alphabet: KeyAlphabet::Printable, .. }, .. } => {
                "Invalid idempotency key format. Key must be 1-255 characters of printable ASCII"
            }
            Self::Malformed { form: KeyForm { is_structured: true, .. }, .. } => {
                "Invalid idempotency key format. Key must be a string of 1-255 characters in quotes, or \
                 contain only letters, numbers, hyphens, and underscores"
            }
            Self::Malformed { .. } => {
                "Invalid idempotency key format. Key must be 1-255 characters long and contain only letters, \
                 numbers, hyphens, and underscores"
            }
            Self::Missing => "This request needs an Idempotency-Key header",
            Self::NoScope(None) => "A request with an idempotency key must say who sends it",
            Self::BodyBroken => "The request body ended too early; nothing was executed",
            Self::BodyTooSlow => "The request body arrived too slowly; nothing was executed",
            Self::NoRoom => "The memory for request bodies is used up; this request was not handled",
            Self::Conflict(_) => "Idempotency key already used with different request body",
            Self::Processing => "Request with this idempotency key is already being processed",
            Self::OutcomeUnknown => {
                "A request with this idempotency key was forwarded and its outcome is unknown; it is not retried"
            }
            Self::NotReplayable => {
                "The request with this idempotency key was answered, but the response was too large to be stored"
            }
            Self::AnswerDamaged => {
                "The request with this idempotency key was answered, but the stored response cannot be read"
            }
            Self::AnswerBroken => "The response broke off; the outcome is unknown",
            Self::StoreUnavailable => {
                "The store of idempotency keys cannot be reached; this request was not handled"
            }
            Self::Panicked => "The handler of this request failed",
        };
        Cow::Borrowed(fixed)
    }

    /// A hint for the author of the client or the operator, beyond the fixed body.
    fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Malformed {
                form: KeyForm { alphabet: KeyAlphabet::Plain, .. },
                is_printable: true,
                ..
            } => Some("the setting key_alphabet = \"printable\" allows this key".into()),
            Self::Conflict(differences) if !differences.is_empty() => {
                Some(format!("the first request with this key had another {differences}").into())
            }
            _ => None,
        }
    }

    /// Counts the refusals that operators should know of.
    pub(crate) fn count(&self) {
        match self {
            Self::BodyTooSlow => Event::BodyTooSlow.count(),
            Self::NoRoom => Event::NoRoom.count(),
            _ => {}
        }
    }

    /// Builds the response to a request with this key.
    pub(crate) fn answer(&self, dialect: RefusalDialect, key: Option<&str>) -> Response<LayerBody> {
        let (status, detail, hint) = (self.status(dialect), self.detail(), self.hint());
        let error = ErrorAnswer { status, code: self.code(), detail: &detail, hint: hint.as_deref(), key };
        let mut response = error.into_response(dialect);
        if let Some(hint) = self.hint().and_then(|hint| HeaderValue::from_str(&hint).ok()) {
            response.headers_mut().insert(HINT, hint);
        }
        if matches!(self, Self::Processing | Self::StoreUnavailable | Self::NoRoom) {
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
        }
        response
    }
}

/// An error response of the layer or of the proxy behind it.
pub(crate) struct ErrorAnswer<'a> {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: &'a str,
    pub hint: Option<&'a str>,
    pub key: Option<&'a str>,
}

impl ErrorAnswer<'_> {
    pub(crate) fn into_response(self, dialect: RefusalDialect) -> Response<LayerBody> {
        let (kind, body) = match dialect {
            RefusalDialect::Tidegate => ("application/json", self.plain()),
            RefusalDialect::Ietf => ("application/problem+json", self.problem()),
        };
        let mut response = Response::new(CollectedBody::from(Bytes::from(body)).into_body());
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(ERROR, HeaderValue::from_static(self.code));
        response
    }

    /// Written by hand: the order of the members is part of the contract.
    fn plain(&self) -> String {
        let key = self.key.map(|key| format!(",\"idempotency_key\":{}", Value::from(key)));
        let (detail, code, key) = (Value::from(self.detail), self.code, key.unwrap_or_default());
        format!("{{\"detail\":{detail},\"error_code\":\"{code}\"{key}}}")
    }

    fn problem(&self) -> String {
        let mut problem = serde_json::json!({
            "type": format!("urn:tidegate:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "error_code": self.code,
        });
        if let Some(hint) = self.hint {
            problem["hint"] = Value::from(hint);
        }
        if let Some(key) = self.key {
            problem["idempotency_key"] = Value::from(key);
        }
        problem.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFLICT: Refusal = Refusal::Conflict(Differences::NONE);
    const MALFORMED: Refusal = Refusal::Malformed {
        form: KeyForm { alphabet: KeyAlphabet::Plain, is_structured: false },
        is_printable: true,
        is_repeated: false,
    };

    fn body(refusal: &Refusal, key: &str, dialect: RefusalDialect) -> String {
        let (status, detail) = (refusal.status(RefusalDialect::Ietf), refusal.detail());
        let hint = refusal.hint();
        let (code, hint, key) = (refusal.code(), hint.as_deref(), Some(key));
        let error = ErrorAnswer { status, code, detail: &detail, hint, key };
        match dialect {
            RefusalDialect::Tidegate => error.plain(),
            RefusalDialect::Ietf => error.problem(),
        }
    }

    fn plain(refusal: &Refusal, key: &str) -> String {
        body(refusal, key, RefusalDialect::Tidegate)
    }

    fn problem(refusal: &Refusal, key: &str) -> Value {
        serde_json::from_str(&body(refusal, key, RefusalDialect::Ietf)).unwrap()
    }

    /// IDM-1: a key that was sent twice is refused for that.
    #[test]
    fn a_key_that_was_sent_twice_is_refused_for_that() {
        let Refusal::Malformed { form, .. } = MALFORMED else { panic!() };
        let twice = Refusal::Malformed { form, is_printable: false, is_repeated: true };
        let problem = problem(&twice, "a, b");
        assert!(problem["detail"].as_str().unwrap().contains("sent more than once"), "{problem}");
    }

    /// IDM-1: a key that another setting allows is rejected with the name of that setting, next to
    /// the fixed body.
    #[test]
    fn a_hint_names_the_setting() {
        let hint = "the setting key_alphabet = \"printable\" allows this key";
        assert_eq!(MALFORMED.answer(RefusalDialect::Tidegate, Some("a.b")).headers()[HINT], hint);
        let problem = problem(&MALFORMED, "a.b");
        assert_eq!(problem["hint"], hint);
        let form = KeyForm { alphabet: KeyAlphabet::Printable, is_structured: false };
        let never = Refusal::Malformed { form, is_printable: false, is_repeated: false };
        let never = never.answer(RefusalDialect::Tidegate, None);
        assert!(!never.headers().contains_key(HINT));
    }

    /// IDM-4: the three bodies, to the letter.
    #[test]
    fn tidegates_bodies_are_fixed() {
        assert_eq!(
            plain(&MALFORMED, "a b\""),
            "{\"detail\":\"Invalid idempotency key format. Key must be 1-255 characters long and contain only \
             letters, numbers, hyphens, and underscores\",\"error_code\":\"INVALID_IDEMPOTENCY_KEY\",\
             \"idempotency_key\":\"a b\\\"\"}"
        );
        assert_eq!(
            plain(&CONFLICT, "k"),
            "{\"detail\":\"Idempotency key already used with different request body\",\
             \"error_code\":\"IDEMPOTENCY_KEY_CONFLICT\",\"idempotency_key\":\"k\"}"
        );
        assert_eq!(
            plain(&Refusal::Processing, "k"),
            "{\"detail\":\"Request with this idempotency key is already being processed\",\
             \"error_code\":\"IDEMPOTENCY_KEY_PROCESSING\",\"idempotency_key\":\"k\"}"
        );
    }

    /// IDM-2: a conflict in which the bodies are the same names the part that differs.
    #[test]
    fn idm_2_a_conflict_names_what_differs() {
        let detail = |place: usize| {
            let (mut one, mut other) = ([0; 32], [0; 32]);
            (one[20], other[place]) = (1, 2);
            Refusal::Conflict(Differences::between(&one, &other)).detail()
        };
        assert_eq!(detail(20), "Idempotency key already used with another query");
        assert_eq!(detail(31), "Idempotency key already used with different request body");
    }

    /// IDM-11, IDM-2: the message names what would have helped.
    #[test]
    fn sentences_name_the_size_and_the_header() {
        assert!(Refusal::BodyTooLarge(8 << 20).detail().contains("8388608 bytes"));
        let header = HeaderName::from_static("x-tenant");
        assert!(Refusal::NoScope(Some(header)).detail().contains("one x-tenant header"));
    }

    /// IDM-16: 422 for another body, 409 in flight, and a machine-readable problem.
    #[test]
    fn the_ietfs_dialect_is_a_problem() {
        let conflict = CONFLICT.answer(RefusalDialect::Ietf, Some("k"));
        assert_eq!(conflict.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(conflict.headers()[CONTENT_TYPE], "application/problem+json");
        let busy = Refusal::Processing.answer(RefusalDialect::Ietf, Some("k"));
        assert_eq!((busy.status(), &busy.headers()[RETRY_AFTER]), (StatusCode::CONFLICT, &RETRY_AFTER_S));
        let problem = problem(&CONFLICT, "k");
        assert_eq!(
            (&problem["status"], &problem["error_code"]),
            (&422.into(), &"IDEMPOTENCY_KEY_CONFLICT".into())
        );
    }
}
