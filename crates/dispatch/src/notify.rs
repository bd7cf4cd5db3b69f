//! Reports the end of a generation to the application that asked for it: a Standard Webhook. The
//! delivery is an operation of its own, so that the engine's journal, retries and crash safety
//! carry it; [`Notifier`] is its executor, and signs each attempt anew. One event has one
//! `webhook-id` in all attempts, by which a receiver recognizes a repeat.

mod executor;
mod retry_delay;
mod target;
mod transport;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_core::Time;
use tidegate_core::bounds::PAYLOAD_LEN_MAX;
use tidegate_upstream::FieldRefusal;

pub use executor::{Notifier, NotifierConfig};
pub use target::check_target;

/// The kind of the operations that deliver notifications.
pub const KIND: &str = "notification";
/// How often a notification is sent, unless the receiver accepts it before: over eleven hours.
pub const ATTEMPTS: u16 = 9;

/// Longest id of a generation, in bytes.
const GENERATION_ID_LEN_MAX: usize = 128;

/// The event that a notification reports: how a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationEnd {
    /// It is completed, and its files are stored.
    Completed,
    /// It failed.
    Failed,
    /// It was canceled.
    Canceled,
}

impl GenerationEnd {
    /// The type of its events.
    #[must_use]
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Completed => "generation.completed",
            Self::Failed => "generation.failed",
            Self::Canceled => "generation.canceled",
        }
    }
}

/// One notification, as its operation stores it. It holds no secret of ours; the URL is the
/// receiver's, and may hold one of theirs.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// The `webhook-id`, the same in every attempt.
    id: String,
    /// Where it is sent.
    url: String,
    /// The body, byte for byte as it is signed and sent.
    body: Box<RawValue>,
}

/// What a notification is submitted to the engine with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationOperation {
    /// The kind of the operation.
    pub kind: &'static str,
    /// Its group: notifications of different generations do not wait for each other.
    pub group: String,
    /// Its dedupe key: the `webhook-id`, so that an event that is reported twice is sent once.
    pub dedupe_key: String,
    /// The number of attempts to ask for.
    pub max_attempts: u16,
    /// Its payload.
    pub payload: Vec<u8>,
}

#[derive(Serialize)]
struct EventBody<'a, T> {
    r#type: &'static str,
    timestamp: String,
    data: &'a T,
}

impl Notification {
    /// Creates the notification that a generation has ended, with the generation as its data. Check
    /// the URL with [`check_target`] when it is first given, so that the caller learns of a
    /// problem.
    ///
    /// # Errors
    /// When the id cannot be in a header, or the data is no JSON.
    pub fn new<T: Serialize>(
        url: impl Into<String>,
        generation: &str,
        end: GenerationEnd,
        at: Time,
        data: &T,
    ) -> Result<Self, FieldRefusal> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_id = (1..=GENERATION_ID_LEN_MAX).contains(&generation.len());
        if !is_id || !generation.bytes().all(is_allowed) {
            let message = "The id of a generation is 1 to 128 letters, digits, '-' or '_'.";
            return Err(FieldRefusal::new("id", message));
        }
        let body = EventBody { r#type: end.event_type(), timestamp: at.to_string(), data };
        let body = serde_json::value::to_raw_value(&body)
            .map_err(|_| FieldRefusal::new("data", "The generation cannot be written as JSON."))?;
        // A full stop would blur what a signature covers.
        let id = format!("msg_{generation}_{}", end.event_type().replace('.', "_"));
        Ok(Self { id, url: url.into(), body })
    }

    /// Creates the operation that delivers it.
    ///
    /// # Errors
    /// When it is larger than an operation may be.
    pub fn to_operation(&self) -> Result<NotificationOperation, FieldRefusal> {
        let payload = serde_json::to_vec(self).unwrap_or_default();
        if payload.is_empty() || payload.len() > PAYLOAD_LEN_MAX {
            let message = format!("The notification is larger than {PAYLOAD_LEN_MAX} bytes.");
            return Err(FieldRefusal::new("data", message));
        }
        Ok(NotificationOperation {
            kind: KIND,
            group: format!("{KIND}/{}", self.id),
            dedupe_key: self.id.clone(),
            max_attempts: ATTEMPTS,
            payload,
        })
    }

    /// Decodes the payload of an operation.
    ///
    /// # Errors
    /// When it is not the payload of a notification.
    pub fn decode(payload: &[u8]) -> Result<Self, FieldRefusal> {
        // The error would repeat a part of the payload.
        serde_json::from_slice(payload)
            .map_err(|_| FieldRefusal::new("payload", "It is not the payload of a notification."))
    }

    /// The `webhook-id`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The body as it is sent.
    #[must_use]
    pub fn body(&self) -> &str {
        self.body.get()
    }
}

impl fmt::Debug for Notification {
    /// Omits the body, and the URL, which may hold a secret of its receiver.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notification(data: &serde_json::Value) -> Result<Notification, FieldRefusal> {
        let at = Time::from_millis(1_780_000_000_123);
        Notification::new("https://app.example/hook?key=hunter2", "op_7", GenerationEnd::Failed, at, data)
    }

    /// DSP-2: an event has the documented shape, and the same id and bytes each time.
    #[test]
    fn dsp_2_an_event_is_the_same_each_time() {
        let data = json!({ "id": "op_7", "status": "failed", "cost": 0.10 });
        let first = notification(&data).unwrap();
        let body = r#"{"type":"generation.failed","timestamp":"2026-05-28T20:26:40.123Z","data":{"#;
        assert!(first.body().starts_with(body), "{}", first.body());
        assert_eq!(first.id(), "msg_op_7_generation_failed");
        let operation = first.to_operation().unwrap();
        assert_eq!(operation, notification(&data).unwrap().to_operation().unwrap());
        assert_eq!((operation.kind, operation.dedupe_key.as_str()), (KIND, first.id()));
        let stored = Notification::decode(&operation.payload).unwrap();
        assert_eq!((stored.body(), stored.id(), &stored.url), (first.body(), first.id(), &first.url));
    }

    #[test]
    fn what_is_no_notification_is_refused() {
        for id in ["", "a.b", "a b", "ä", "a\nb", &"x".repeat(129)] {
            let new = Notification::new("", id, GenerationEnd::Canceled, Time::ZERO, &());
            assert_eq!(new.unwrap_err().field, "id", "{id}");
        }
        let large = notification(&json!("x".repeat(PAYLOAD_LEN_MAX))).unwrap();
        assert_eq!(large.to_operation().unwrap_err().field, "data");
        for payload in ["", "{}", r#"{"id":"a","url":"hunter2","body":{},"more":1}"#] {
            let refused = Notification::decode(payload.as_bytes()).unwrap_err();
            assert!(refused.field == "payload" && !refused.message.contains("hunter2"), "{refused}");
        }
    }

    /// OPS-22: what is printed has neither the body nor the URL.
    #[test]
    fn ops_22_a_notification_prints_no_secret() {
        let printed = format!("{:?}", notification(&json!("hunter2")).unwrap());
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}
