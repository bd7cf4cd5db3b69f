//! Idempotency keys as JSON for operators, never with a body, and the response that an operator
//! records.

use std::collections::BTreeMap;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::fingerprint::hex;
use tidegate_core::shared::record::OnLapse;
use tidegate_idempotency::{KeyDetail, KeyState, KeySummary, RecordName, RecordedAnswer};

use super::field::Field;
use super::object::{self, Fields};
use super::time::Timestamp;
use crate::error::{Error, ErrorCode, Result};

/// The states of a key.
pub(crate) const STATES: [&str; 3] = ["processing", "unknown", "completed"];

/// The name of a key in the store.
#[derive(Serialize)]
pub(crate) struct KeyNameOut<'a> {
    key: &'a str,
    scope: &'a str,
    method: &'a str,
    path: &'a str,
}

impl<'a> KeyNameOut<'a> {
    pub(crate) fn new(name: &'a RecordName) -> Self {
        Self { key: name.key.as_str(), scope: name.scope.as_str(), method: &name.method, path: &name.path }
    }
}

#[derive(Serialize)]
pub(crate) struct KeyOut<'a> {
    #[serde(flatten)]
    name: KeyNameOut<'a>,
    state: &'static str,
    created_at: Timestamp,
    expires_at: Timestamp,
    /// When the lease of its holder expires without a heartbeat; `null` if the key is completed.
    lease_until: Option<Timestamp>,
    /// What happens to it then.
    on_lapse: Option<&'static str>,
    /// The size of the stored response, in bytes.
    kept_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Option<KeyAnswerOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct KeyAnswerOut {
    status: u16,
    /// `null` if it was too large to be stored.
    body_bytes: Option<usize>,
}

impl<'a> KeyOut<'a> {
    /// The key as an item of a list.
    pub(crate) fn line(listed: &'a KeySummary, now: Time) -> Self {
        let (lease_until, on_lapse, kept_bytes) = match listed.state {
            KeyState::Processing { until, on_lapse } => {
                (Some(Timestamp(until)), Some(lapse_word(on_lapse)), None)
            }
            KeyState::Completed(bytes) => (None, None, Some(bytes)),
        };
        Self {
            name: KeyNameOut::new(&listed.name),
            state: state(listed.state, now),
            created_at: Timestamp(listed.created),
            expires_at: Timestamp(listed.expires),
            lease_until,
            on_lapse,
            kept_bytes,
            fingerprint: None,
            answer: None,
            damaged: None,
        }
    }

    /// The key with all its details.
    pub(crate) fn whole(shown: &'a KeyDetail, now: Time) -> Self {
        let answer = shown.answer.map(|(status, body_bytes)| KeyAnswerOut { status, body_bytes });
        Self {
            fingerprint: Some(hex(&shown.fingerprint)),
            answer: Some(answer),
            damaged: shown.damaged.as_deref(),
            ..Self::line(&shown.summary, now)
        }
    }
}

#[derive(Serialize)]
pub(crate) struct KeysOut<'a> {
    pub keys: Vec<KeyOut<'a>>,
    pub next_cursor: Option<String>,
}

/// A key that was released or expired.
#[derive(Serialize)]
pub(crate) struct FreedKeyOut<'a> {
    #[serde(flatten)]
    pub name: KeyNameOut<'a>,
    pub state: &'static str,
}

/// The state of a key, by this machine's clock.
pub(crate) fn state(standing: KeyState, now: Time) -> &'static str {
    match standing {
        KeyState::Processing { until, on_lapse: OnLapse::Hold } if until <= now => "unknown",
        KeyState::Processing { .. } => "processing",
        KeyState::Completed(_) => "completed",
    }
}

const fn lapse_word(on_lapse: OnLapse) -> &'static str {
    match on_lapse {
        OnLapse::TakeOver => "take_over",
        OnLapse::Hold => "hold",
    }
}

/// Parses the response that an operator records: `{"status","headers","body"}`. A body that is a
/// text is used as it is, any other value as the JSON that was sent.
///
/// # Errors
/// The first invalid field.
pub(crate) fn read_answer(body: &[u8]) -> Result<RecordedAnswer> {
    let Fields { values: [status, headers, body], problems } =
        object::read(body, &["status", "headers", "body"])?;
    problems.finish()?;
    let bad = |field: &str, wanted: &str| {
        let message = format!("The field {field:?} must be {wanted}.");
        Error::new(ErrorCode::Malformed, message).field(field)
    };
    let status = Field { name: "status", raw: status }.integer(200..=599)?;
    let status = status.ok_or_else(|| object::missing("status"))?;
    let wanted = "an object of texts, each a header";
    let named: BTreeMap<String, String> = match headers {
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| bad("headers", wanted))?,
        None => BTreeMap::new(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &named {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("headers", wanted))?;
        let value = HeaderValue::from_str(value).map_err(|_| bad("headers", wanted))?;
        headers.insert(name, value);
    }
    let raw = body.map_or("null", serde_json::value::RawValue::get);
    let body = match raw {
        "null" => String::new(),
        text if text.starts_with('"') => {
            serde_json::from_str(text).map_err(|_| bad("body", "a string or JSON"))?
        }
        json => json.to_owned(),
    };
    if !body.is_empty() {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
        let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    }
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.ok_or_else(|| bad("status", "200 to 599"))?;
    let answer = RecordedAnswer { status, headers, body: body.into() };
    match answer.header_not_replayed() {
        Some(name) => {
            let message = format!("The header {name} is never replayed: leave it out.");
            Err(Error::new(ErrorCode::Invalid, message).field(format!("headers.{name}")))
        }
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-22: a response is recorded with the content type of its body, unless another is given.
    #[test]
    fn idm_22_a_recorded_answer_has_a_type() {
        let read = |text: &str| read_answer(text.as_bytes());
        let made = read(r#"{"status":201,"headers":{"Location":"/7"},"body":"{\"id\":7}"}"#).unwrap();
        assert_eq!((made.status.as_u16(), &*made.body), (201, &b"{\"id\":7}"[..]));
        assert_eq!(made.headers[CONTENT_TYPE], "application/json");
        assert_eq!(made.headers["location"], "/7");
        assert_eq!(read(r#"{"status":201,"body":{"id": 7}}"#).unwrap().body, "{\"id\": 7}");
        let text = read(r#"{"status":200,"headers":{"content-type":"a/b"},"body":"made"}"#).unwrap();
        assert_eq!(text.body, "made");
        assert_eq!(text.headers[CONTENT_TYPE], "a/b");
        assert!(read(r#"{"status":204}"#).unwrap().headers.is_empty());
        for (wrong, field) in [
            ("{}", "status"),
            (r#"{"status":100}"#, "status"),
            (r#"{"status":200,"headers":{"a b":"c"}}"#, "headers"),
            (r#"{"status":200,"headers":[]}"#, "headers"),
            (r#"{"status":200,"what":1}"#, "what"),
            (r#"{"status":200,"headers":{"location":"/7","Set-Cookie":"a=b"}}"#, "headers.set-cookie"),
            (r#"{"status":200,"headers":{"date":"Sun, 15 Nov 2026 10:00:00 GMT"}}"#, "headers.date"),
        ] {
            assert_eq!(read(wrong).unwrap_err().field.as_deref(), Some(field), "{wrong}");
        }
    }

    /// IDM-22: a key that is held after its lease has an unknown outcome; one that may be taken
    /// over is processing.
    #[test]
    fn idm_22_what_is_held_after_its_lease_is_unknown() {
        let (then, now) = (Time::from_millis(1), Time::from_millis(2));
        let of = |until, on_lapse| state(KeyState::Processing { until, on_lapse }, now);
        assert_eq!(of(then, OnLapse::Hold), "unknown");
        assert_eq!(of(now.after(std::time::Duration::from_millis(1)), OnLapse::Hold), "processing");
        assert_eq!(of(then, OnLapse::TakeOver), "processing");
        assert_eq!(state(KeyState::Completed(1), now), "completed");
    }
}
