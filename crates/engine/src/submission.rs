//! What a caller hands in, and what it gets back at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{OnFailure, OnUnknown, OperationId, State, Time};

/// An operation that asks to be carried.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Who carries it: a registered executor's kind.
    pub kind: Arc<str>,
    /// The key inside which order holds.
    pub group: Arc<str>,
    /// What is sent, as that executor reads it.
    pub payload: Bytes,
    /// The upstream it is for, so that it is listed with others of the same.
    pub upstream: Option<Arc<str>>,
    /// What it costs of which limit, in whole tokens, where that is not the usual one token.
    pub cost: BTreeMap<String, u64>,
    /// Two submissions with one key are one operation.
    pub dedupe_key: Option<Arc<str>>,
    /// Attempts in all; 8 when not said.
    pub max_attempts: Option<u16>,
    /// To be started within this time.
    pub deadline: Option<Duration>,
    /// To be started before this time; instead of `deadline`.
    pub deadline_at: Option<Time>,
    /// Not to be started within this time.
    pub delay: Option<Duration>,
    /// 0 is usual; up to 4 goes earlier.
    pub priority: u8,
    /// What follows an unknown outcome; the executor's own rule when not said.
    pub on_unknown: Option<OnUnknown>,
    /// What follows a failure; what the engine's rules say when not said.
    pub on_failure: Option<OnFailure>,
    /// For tracing.
    pub request_id: Option<Arc<str>>,
    /// For tracing.
    pub deployment_id: Option<Arc<str>>,
}

impl Submission {
    /// With every default.
    #[must_use]
    pub fn new(kind: impl Into<Arc<str>>, group: impl Into<Arc<str>>, payload: impl Into<Bytes>) -> Self {
        Self {
            kind: kind.into(),
            group: group.into(),
            payload: payload.into(),
            upstream: None,
            cost: BTreeMap::new(),
            dedupe_key: None,
            max_attempts: None,
            deadline: None,
            deadline_at: None,
            delay: None,
            priority: 0,
            on_unknown: None,
            on_failure: None,
            request_id: None,
            deployment_id: None,
        }
    }
}

/// That it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id, or the first one's when it was a duplicate.
    pub id: OperationId,
    /// Where it stands.
    pub state: State,
    /// Whether the same request had been accepted before.
    pub deduplicated: bool,
}
