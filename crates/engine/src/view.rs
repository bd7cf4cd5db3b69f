//! Views returned to callers: operations with their results, pages of them, groups, limits,
//! reasons.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::model::{Cause, GroupView};
use tidegate_core::{Fault, OnFailure, OnUnknown, OperationId, Seq, State, Time};
use tidegate_store::attempt::AttemptState;
use tidegate_upstream::{RequestLine, RequestView};

use crate::journey::{JourneyAttempt, JourneyTimes};
use crate::outcome_filter::OutcomeFilter;

/// An operation, ended or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// Its current state.
    pub state: State,
    /// The kind of its executor.
    pub kind: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Attempts made, including the one in flight.
    pub attempt: u16,
    /// When it was accepted.
    pub created_at: Time,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// The response, as its executor encoded it (JSON for the built-in ones). Omitted in pages.
    pub result: Option<Bytes>,
    /// The last fault.
    pub fault: Option<Fault>,
    /// The caller's dedupe key.
    pub dedupe_key: Option<Arc<str>>,
    /// The caller's request id, for tracing.
    pub request_id: Option<Arc<str>>,
    /// The caller's deployment id, for tracing.
    pub deployment_id: Option<Arc<str>>,
    /// The upstream it is for.
    pub upstream: Option<Arc<str>>,
    /// The user it is for.
    pub user: Option<Arc<str>>,
    /// What it asks the upstream for; `None` for a kind that has no request line, and for a request
    /// that is damaged. [`Engine::details`](crate::Engine::details) returns all of it.
    pub request: Option<RequestLine>,
    /// The id by which the upstream knows its job, if it accepted one and the operation did not
    /// succeed. Omitted in pages.
    pub job_id: Option<Arc<str>>,
    /// The time by which it must start.
    pub deadline_at: Option<Time>,
    /// Whether a cancel was requested that has not ended it yet.
    pub cancel_requested: bool,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// The other rules that it was submitted with; those by default in the queue of a group.
    pub rules: SubmissionRules,
    /// The hash that identifies the request. Omitted in pages, which have no payloads.
    pub fingerprint: Option<u128>,
    /// The request as it was accepted; empty in pages.
    pub(crate) payload: StoredPayload,
}

/// What a submission asked for in addition to its request: whoever decides about the operation
/// sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubmissionRules {
    /// What it costs of limits, by their names, where the submission says so.
    pub cost: BTreeMap<String, u64>,
    /// Its priority.
    pub priority: u8,
    /// What follows an unknown outcome, where the submission says so.
    pub on_unknown: Option<OnUnknown>,
    /// What follows a failure, where the submission says so.
    pub on_failure: Option<OnFailure>,
}

/// A payload, which is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredPayload(pub Bytes);

impl fmt::Debug for StoredPayload {
    /// Shows the length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What an operation is, in short, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationOutline {
    /// Its id.
    pub id: OperationId,
    /// The upstream it is for.
    pub upstream: Option<Arc<str>>,
    /// What it asks the upstream for; `None` for a kind that has no request line.
    pub request: Option<RequestLine>,
}

/// What an operation asks for, and what became of its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationDetails {
    /// The request, with its secrets masked and bounded in size; `None` when it is damaged.
    pub request: Option<RequestView>,
    /// Its attempts whose job ended, or ends, elsewhere, and those of unknown outcome, in order.
    pub attempts: Vec<AttemptView>,
    /// How long it spent in each step, as far as this process knows.
    pub journey: JourneyTimes,
    /// All its attempts, as far as this process has seen them and remembers them.
    pub seen_attempts: Vec<JourneyAttempt>,
}

/// One attempt of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptView {
    /// Its number; the first is 1.
    pub number: u16,
    /// Its current state.
    pub state: AttemptState,
    /// When its job was accepted, or, if none was, when its outcome became unknown.
    pub at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// The id by which the upstream knows its job.
    pub job_id: Option<Arc<str>>,
    /// What it may have cost, in millionths of the unit that the executor counts in.
    pub cost: Option<u64>,
    /// The response that accepted its job, or that left its outcome unknown, as its executor
    /// encoded it.
    pub response: Option<Bytes>,
}

impl AttemptView {
    /// When its job was accepted; `None` if none was.
    #[must_use]
    pub fn accepted_at(&self) -> Option<Time> {
        (self.ended_at != Some(self.at)).then_some(self.at)
    }
}

/// Selects the operations to list, newest first.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// Only operations of this group.
    pub group: Option<Arc<str>>,
    /// Only operations in these states; all states when empty.
    pub states: Vec<State>,
    /// Only operations of this kind.
    pub kind: Option<Arc<str>>,
    /// Only operations for this upstream.
    pub upstream: Option<Arc<str>>,
    /// Only operations for this user.
    pub user: Option<Arc<str>>,
    /// Only the operation accepted under this key, while the key is remembered.
    pub dedupe_key: Option<Arc<str>>,
    /// Only the operation with this sequence number.
    pub seq: Option<Seq>,
    /// Only operations with this fault or end.
    pub outcome: OutcomeFilter,
    /// Only operations accepted at this time or later.
    pub created_after: Option<Time>,
    /// Only operations accepted earlier.
    pub created_before: Option<Time>,
    /// Only operations accepted before this one.
    pub before: Option<OperationId>,
    /// The maximum number of operations to return.
    pub limit: usize,
}

impl Filter {
    /// Selects the operations of one group.
    #[must_use]
    pub fn with_group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Selects operations in these states.
    #[must_use]
    pub fn with_states(mut self, states: impl IntoIterator<Item = State>) -> Self {
        self.states = states.into_iter().collect();
        self
    }

    /// Selects operations of one kind.
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Selects operations for one upstream.
    #[must_use]
    pub fn with_upstream(mut self, upstream: impl Into<Arc<str>>) -> Self {
        self.upstream = Some(upstream.into());
        self
    }

    /// Selects operations for one user.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Selects the operation accepted under this key.
    #[must_use]
    pub fn with_dedupe_key(mut self, dedupe_key: impl Into<Arc<str>>) -> Self {
        self.dedupe_key = Some(dedupe_key.into());
        self
    }

    /// Selects operations by their last fault and by when they ended.
    #[must_use]
    pub fn with_outcome(mut self, outcome: OutcomeFilter) -> Self {
        self.outcome = outcome;
        self
    }

    /// Selects operations accepted at this time or later.
    #[must_use]
    pub fn with_created_after(mut self, created_after: impl Into<Option<Time>>) -> Self {
        self.created_after = created_after.into();
        self
    }

    /// Selects operations accepted earlier.
    #[must_use]
    pub fn with_created_before(mut self, created_before: impl Into<Option<Time>>) -> Self {
        self.created_before = created_before.into();
        self
    }

    /// Selects operations accepted before this one.
    #[must_use]
    pub fn with_before(mut self, before: impl Into<Option<OperationId>>) -> Self {
        self.before = before.into();
        self
    }

    /// Sets the maximum number of operations to return.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// Selects the groups to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupFilter {
    /// Every group that has operations or is stopped.
    #[default]
    All,
    /// Groups that wait for an operator, held or paused.
    Stopped,
    /// Groups held by an unknown outcome or a failure, and not paused.
    Held,
    /// Groups that an operator paused.
    Paused,
}

/// A page of operations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OperationPage {
    /// Newest first.
    pub operations: Vec<OperationView>,
    /// Where the next page starts; `None` at the end. Because a page scans a bounded number of
    /// operations, it can be empty although more follow.
    pub next: Option<OperationId>,
}

/// Why an operation is not running, with a sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// `running`, `turn`, `worker`, `time`, `bucket`, `lease`, `person`, `nothing` (it has ended).
    pub waiting_for: &'static str,
    /// The limit, or the person who paused the group.
    pub name: Option<Arc<str>>,
    /// When the wait ends, if known; for an operation that waits its turn, when that is expected.
    pub until: Option<Time>,
    /// When it is expected to start: an estimate of what the known limits allow.
    pub starts_at: Option<Time>,
    /// The operation ahead of it.
    pub behind: Option<OperationId>,
    /// One sentence: cause, holder, end.
    pub because: String,
    /// The same for machines; `None` when the operation has ended.
    pub cause: Option<Cause>,
}

/// A page of groups.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupPage {
    /// Groups by name, each with what it waits for.
    pub groups: Vec<(GroupView, Option<Reason>)>,
    /// Where the next page starts.
    pub next: Option<Arc<str>>,
}
