//! A caller's submission, and the receipt returned at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{OnFailure, OnUnknown, OperationId, State, Time};

/// An operation submitted for execution.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The kind of a registered executor.
    pub kind: Arc<str>,
    /// The key within which order is kept.
    pub group: Arc<str>,
    /// The request, in the executor's format.
    pub payload: Bytes,
    /// The upstream it is for, so that it is listed with others for the same upstream.
    pub upstream: Option<Arc<str>>,
    /// The cost per limit, in whole tokens, where it differs from the default of one token.
    pub cost: BTreeMap<String, u64>,
    /// The dedupe key: two submissions with one key are one operation.
    pub dedupe_key: Option<Arc<str>>,
    /// The maximum number of attempts; the default is 8.
    pub max_attempts: Option<u16>,
    /// The time within which it must start.
    pub deadline: Option<Duration>,
    /// The time by which it must start; an alternative to `deadline`.
    pub deadline_at: Option<Time>,
    /// The delay before it may start.
    pub delay: Option<Duration>,
    /// 0 is the default; up to 4 goes earlier.
    pub priority: u8,
    /// What to do after an unknown outcome; the default is the executor's own rule.
    pub on_unknown: Option<OnUnknown>,
    /// What to do after a failure; the default comes from the engine's rules.
    pub on_failure: Option<OnFailure>,
    /// The caller's request id, for tracing.
    pub request_id: Option<Arc<str>>,
    /// The caller's deployment id, for tracing.
    pub deployment_id: Option<Arc<str>>,
}

impl Submission {
    /// Creates a submission with every default.
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

/// The receipt of an accepted submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id, or the id of the first one when it was a duplicate.
    pub id: OperationId,
    /// Its current state.
    pub state: State,
    /// Whether the same request had been accepted before.
    pub deduplicated: bool,
}
