//! A caller's submission, and the receipt returned at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{OnFailure, OnUnknown, OperationId, State, Time};
use tidegate_upstream::{Envelope, HttpRequest};

use crate::engine::HTTP;
use crate::error::{Error, ErrorKind, Result};

/// An operation submitted for execution.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// The key of the request that submits it; it counts only without a dedupe key.
    pub request_key: Option<RequestKey>,
    /// The maximum number of attempts; the default is 8.
    pub max_attempts: Option<u16>,
    /// The time within which it must start.
    pub deadline: Option<Duration>,
    /// The time by which it must start; an alternative to `deadline`.
    pub deadline_at: Option<Time>,
    /// The time within which the known limits must let it start for it to be accepted; by default
    /// its deadline.
    pub start_within: Option<Duration>,
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
    /// The user it is for, so that it is listed with others of the same user.
    pub user: Option<Arc<str>>,
}

/// The key of the request by which an operation is submitted, such as an `Idempotency-Key`: the
/// same request again finds the operation. It is remembered as a hash, and shown nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The key, with everything that makes it unique, such as its caller.
    pub name: Arc<str>,
    /// How long it is remembered, at most as long as a dedupe key.
    pub window: Duration,
    /// How long ago the key was new: what was accepted under it before that does not count. `None`
    /// when the request is a repeat, so that everything counts.
    pub new_since: Option<Duration>,
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
            request_key: None,
            max_attempts: None,
            deadline: None,
            deadline_at: None,
            start_within: None,
            delay: None,
            priority: 0,
            on_unknown: None,
            on_failure: None,
            request_id: None,
            deployment_id: None,
            user: None,
        }
    }

    /// Creates the submission of an HTTP request to the upstream of this name.
    ///
    /// # Errors
    /// When the request is larger than an operation may be.
    pub fn http(upstream: &str, group: impl Into<Arc<str>>, request: HttpRequest) -> Result<Self> {
        let payload = Envelope::new(upstream, request)
            .encode()
            .map_err(|refusal| Error::new(ErrorKind::TooLarge, refusal.message).field(refusal.field))?;
        Ok(Self::new(HTTP, group, payload).with_upstream(upstream))
    }

    /// Sets the cost in one limit of its upstream, in whole tokens, where it is not one token.
    #[must_use]
    pub fn with_cost(mut self, limit: impl Into<String>, tokens: u64) -> Self {
        self.cost.insert(limit.into(), tokens);
        self
    }

    /// Names the upstream it is for, so that it is listed with others for the same upstream.
    #[must_use]
    pub fn with_upstream(mut self, upstream: impl Into<Arc<str>>) -> Self {
        self.upstream = Some(upstream.into());
        self
    }

    /// Sets the dedupe key: two submissions with one key are one operation.
    #[must_use]
    pub fn with_dedupe_key(mut self, dedupe_key: impl Into<Arc<str>>) -> Self {
        self.dedupe_key = Some(dedupe_key.into());
        self
    }

    /// Sets the key of the request that submits it.
    #[must_use]
    pub fn with_request_key(mut self, request_key: impl Into<Option<RequestKey>>) -> Self {
        self.request_key = request_key.into();
        self
    }

    /// Sets the maximum number of attempts; 8 by default.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: impl Into<Option<u16>>) -> Self {
        self.max_attempts = max_attempts.into();
        self
    }

    /// Sets the time within which it must start.
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets the time by which it must start.
    #[must_use]
    pub fn with_deadline_at(mut self, deadline_at: impl Into<Option<Time>>) -> Self {
        self.deadline_at = deadline_at.into();
        self
    }

    /// Sets the time within which the known limits must let it start for it to be accepted, where
    /// that is not its deadline.
    #[must_use]
    pub fn with_start_within(mut self, start_within: impl Into<Option<Duration>>) -> Self {
        self.start_within = start_within.into();
        self
    }

    /// Sets the delay before it may start.
    #[must_use]
    pub fn with_delay(mut self, delay: impl Into<Option<Duration>>) -> Self {
        self.delay = delay.into();
        self
    }

    /// Sets the priority: 0 is the default, and up to 4 goes earlier.
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets what to do after an unknown outcome.
    #[must_use]
    pub fn with_on_unknown(mut self, on_unknown: impl Into<Option<OnUnknown>>) -> Self {
        self.on_unknown = on_unknown.into();
        self
    }

    /// Sets what to do after a failure.
    #[must_use]
    pub fn with_on_failure(mut self, on_failure: impl Into<Option<OnFailure>>) -> Self {
        self.on_failure = on_failure.into();
        self
    }

    /// Sets the caller's request id, for tracing.
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl Into<Arc<str>>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// Sets the caller's deployment id, for tracing.
    #[must_use]
    pub fn with_deployment_id(mut self, deployment_id: impl Into<Arc<str>>) -> Self {
        self.deployment_id = Some(deployment_id.into());
        self
    }

    /// Names the user it is for, so that it is listed with others of the same user.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
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
