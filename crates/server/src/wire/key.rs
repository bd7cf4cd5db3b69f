//! Idempotency keys as operators get them, never with a body.

use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::fingerprint::hex;
use tidegate_core::shared::record::OnLapse;
use tidegate_idempotency::{Listed, Name, Shown, Standing};

use super::time::At;

/// Every word for where a key stands.
pub(crate) const STATES: [&str; 3] = ["processing", "unknown", "completed"];

/// Which key: what the store knows it by.
#[derive(Serialize)]
pub(crate) struct NameOut<'a> {
    key: &'a str,
    scope: &'a str,
    method: &'a str,
    path: &'a str,
}

impl<'a> NameOut<'a> {
    pub(crate) fn new(name: &'a Name) -> Self {
        Self { key: name.key.as_str(), scope: name.scope.as_str(), method: &name.method, path: &name.path }
    }
}

#[derive(Serialize)]
pub(crate) struct KeyOut<'a> {
    #[serde(flatten)]
    name: NameOut<'a>,
    state: &'static str,
    created_at: At,
    expires_at: At,
    /// Until when its holder has it without a sign of life; `null` when it is completed.
    lease_until: Option<At>,
    /// What becomes of it then.
    on_lapse: Option<&'static str>,
    /// What is kept of the answer, in bytes.
    kept_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Option<AnswerOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct AnswerOut {
    status: u16,
    /// Nothing when it was too large to be kept.
    body_bytes: Option<usize>,
}

impl<'a> KeyOut<'a> {
    /// As a line of a list.
    pub(crate) fn line(listed: &'a Listed, now: Time) -> Self {
        let (lease_until, on_lapse, kept_bytes) = match listed.standing {
            Standing::Processing { until, on_lapse } => (Some(At(until)), Some(lapse_word(on_lapse)), None),
            Standing::Completed(bytes) => (None, None, Some(bytes)),
        };
        Self {
            name: NameOut::new(&listed.name),
            state: state(listed.standing, now),
            created_at: At(listed.created),
            expires_at: At(listed.expires),
            lease_until,
            on_lapse,
            kept_bytes,
            fingerprint: None,
            answer: None,
            damaged: None,
        }
    }

    /// Looked into.
    pub(crate) fn whole(shown: &'a Shown, now: Time) -> Self {
        let answer = shown.answer.map(|(status, body_bytes)| AnswerOut { status, body_bytes });
        Self {
            fingerprint: Some(hex(&shown.fingerprint)),
            answer: Some(answer),
            damaged: shown.damaged.as_deref(),
            ..Self::line(&shown.listed, now)
        }
    }
}

#[derive(Serialize)]
pub(crate) struct KeysOut<'a> {
    pub keys: Vec<KeyOut<'a>>,
    pub next_cursor: Option<String>,
}

/// A key that is free now.
#[derive(Serialize)]
pub(crate) struct ChangedOut<'a> {
    #[serde(flatten)]
    pub name: NameOut<'a>,
    pub state: &'static str,
}

/// Where it stands, by this machine's clock.
pub(crate) fn state(standing: Standing, now: Time) -> &'static str {
    match standing {
        Standing::Processing { until, on_lapse: OnLapse::Hold } if until <= now => "unknown",
        Standing::Processing { .. } => "processing",
        Standing::Completed(_) => "completed",
    }
}

const fn lapse_word(on_lapse: OnLapse) -> &'static str {
    match on_lapse {
        OnLapse::TakeOver => "take_over",
        OnLapse::Hold => "hold",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-22: a key that is held after its lease has an unknown outcome; one that may be taken over is in work.
    #[test]
    fn idm_22_what_is_held_after_its_lease_is_unknown() {
        let (then, now) = (Time::from_millis(1), Time::from_millis(2));
        let of = |until, on_lapse| state(Standing::Processing { until, on_lapse }, now);
        assert_eq!(of(then, OnLapse::Hold), "unknown");
        assert_eq!(of(now.after(std::time::Duration::from_millis(1)), OnLapse::Hold), "processing");
        assert_eq!(of(then, OnLapse::TakeOver), "processing");
        assert_eq!(state(Standing::Completed(1), now), "completed");
    }
}
