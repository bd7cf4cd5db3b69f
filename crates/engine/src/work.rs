//! Work for remote workers: what they ask for, what they are handed, and what they report. A remote
//! worker holds a claim by its fence and its lease, like a worker of the owner's own process, but
//! renews it itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{Fence, OnUnknown, OperationId, State, Time};
use tidegate_upstream::Outcome;

/// A request of a remote worker for operations that may run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// The remote kinds that it executes.
    pub kinds: Vec<Arc<str>>,
    /// The most operations it takes.
    pub max: usize,
    /// How long a claim holds without an extension.
    pub lease: Duration,
}

/// The remote kinds of which an operation may be claimed now.
pub type ReadyKinds = Arc<[Arc<str>]>;

/// A claim, by the operation and its fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimId {
    /// The operation.
    pub id: OperationId,
    /// The fence of the claim.
    pub fence: Fence,
}

/// An operation that is handed to a remote worker.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteClaim {
    /// The claim.
    pub claim: ClaimId,
    /// The kind of the operation.
    pub kind: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Its payload.
    pub payload: Bytes,
    /// The number of this attempt; the first is 1.
    pub attempt: u16,
    /// When the claim expires, unless it is extended.
    pub until: Time,
    /// How long that is from now.
    pub lease: Duration,
    /// The time after which the work is pointless.
    pub deadline: Option<Time>,
    /// Whether the last attempt's outcome is unknown, and to be checked before anything is done.
    pub reconcile_first: bool,
    /// Whether an earlier attempt may have taken effect, or may still be in progress.
    pub in_doubt: bool,
    /// What follows when its outcome is unknown.
    pub on_unknown: OnUnknown,
    /// The alternative that was granted, if the operation has some.
    pub alternative: Option<Arc<str>>,
    /// The limits that it charges: what a report may blame or close.
    pub limits: Vec<Arc<str>>,
    /// The job to ask about, when it was accepted before: it must not be started again.
    pub job: Option<RemoteJob>,
    /// Authorizes the completion of this attempt by others. A secret.
    pub completion_token: Option<String>,
}

/// A job that a worker has reported as accepted, and what was kept of it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteJob {
    /// When it was accepted.
    pub since: Time,
    /// The id by which others know it.
    pub external_id: Option<Arc<str>>,
    /// What the worker wanted to remember.
    pub memo: Bytes,
    /// Whether a cancel was requested, to be passed on.
    pub cancel_requested: bool,
}

impl fmt::Debug for RemoteClaim {
    /// Shows neither the payload nor the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteClaim")
            .field("claim", &self.claim)
            .field("kind", &self.kind)
            .field("group", &self.group)
            .field("attempt", &self.attempt)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteJob {
    /// Shows everything but the memo.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteJob")
            .field("since", &self.since)
            .field("external_id", &self.external_id)
            .finish_non_exhaustive()
    }
}

/// The answer to a request to extend a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseExtension {
    /// When the claim expires now; `None` when the worker no longer holds it and must stop.
    pub until: Option<Time>,
    /// Whether a cancel was requested: the worker should stop, and report what it did.
    pub cancel_requested: bool,
}

/// A remote worker's report on a claim.
#[derive(Clone, Debug)]
pub struct WorkReport {
    /// The claim.
    pub claim: ClaimId,
    /// What became of the attempt.
    pub outcome: Outcome,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkReceipt {
    /// Whether it settled the claim. Otherwise that had ended before, and nothing changed.
    pub applied: bool,
    /// The state of the operation afterwards.
    pub state: State,
}
