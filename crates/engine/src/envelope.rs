//! What is needed besides the payload to execute an operation: its submission options and trace
//! ids. Stored next to the payload, with a checksum of both as its last field (`seal.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::{OnFailure, OnUnknown};

use crate::view::SubmissionRules;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Envelope {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cost: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<RuleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<RuleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Arc<str>>,
    /// Microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
}

/// The rules, as stable names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleName {
    Repeat,
    Reconcile,
    Ask,
    Skip,
    Hold,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Envelope {
    pub(crate) fn encode(&self) -> Bytes {
        if *self == Self::default() {
            return Bytes::new();
        }
        serde_json::to_vec(self).map(Bytes::from).unwrap_or_default()
    }

    /// Decodes an envelope; an unreadable one is treated as empty, because the payload is still
    /// valid.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::default() } else { serde_json::from_slice(bytes).unwrap_or_default() }
    }

    pub(crate) fn on_unknown(&self) -> Option<OnUnknown> {
        match self.on_unknown? {
            RuleName::Repeat => Some(OnUnknown::Repeat),
            RuleName::Reconcile => Some(OnUnknown::Reconcile),
            RuleName::Ask => Some(OnUnknown::Ask),
            RuleName::Skip | RuleName::Hold => None,
        }
    }

    pub(crate) fn on_failure(&self) -> Option<OnFailure> {
        match self.on_failure? {
            RuleName::Skip => Some(OnFailure::Skip),
            RuleName::Hold => Some(OnFailure::Hold),
            RuleName::Repeat | RuleName::Reconcile | RuleName::Ask => None,
        }
    }
}

impl From<&Envelope> for SubmissionRules {
    fn from(envelope: &Envelope) -> Self {
        Self {
            cost: envelope.cost.clone(),
            priority: envelope.priority,
            on_unknown: envelope.on_unknown(),
            on_failure: envelope.on_failure(),
        }
    }
}

impl From<OnUnknown> for RuleName {
    fn from(rule: OnUnknown) -> Self {
        match rule {
            OnUnknown::Repeat => Self::Repeat,
            OnUnknown::Reconcile => Self::Reconcile,
            OnUnknown::Ask => Self::Ask,
        }
    }
}

impl From<OnFailure> for RuleName {
    fn from(rule: OnFailure) -> Self {
        match rule {
            OnFailure::Skip => Self::Skip,
            OnFailure::Hold => Self::Hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_reads_back_and_defaults_cost_nothing() {
        assert!(Envelope::default().encode().is_empty());
        let said = Envelope {
            on_unknown: Some(OnUnknown::Repeat.into()),
            on_failure: Some(OnFailure::Hold.into()),
            request_id: Some("r-1".into()),
            cost: BTreeMap::from([("points".to_owned(), 52)]),
            ..Envelope::default()
        };
        assert_eq!(Envelope::decode(&said.encode()), said);
        assert_eq!(said.on_unknown(), Some(OnUnknown::Repeat));
        assert_eq!(said.on_failure(), Some(OnFailure::Hold));
        let older = br#"{"max_attempts":3,"request_id":"r-1"}"#;
        assert_eq!(Envelope::decode(older).upstream, None, "what an earlier version wrote is read");
        let newer = Envelope { upstream: Some("echo".into()), deadline_at: Some(7), ..Envelope::default() };
        assert_eq!(newer.encode(), r#"{"upstream":"echo","deadline_at":7}"#);
        assert_eq!(Envelope::decode(b"not json"), Envelope::default());
    }
}
