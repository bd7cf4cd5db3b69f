//! What can be seen: operations with their results, pages of them, groups, limits, reasons.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::model::{Cause, GroupView};
use tidegate_core::{Fault, OperationId, State, Time};

/// An operation, ended or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// Where it stands.
    pub state: State,
    /// Who carries it.
    pub kind: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Attempts made, the one under way among them.
    pub attempt: u16,
    /// When it was accepted.
    pub created_at: Time,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// What came back, as its executor encoded it (JSON for the built-in ones). Left out of pages.
    pub result: Option<Bytes>,
    /// What went wrong last.
    pub fault: Option<Fault>,
    /// The caller's key.
    pub dedupe_key: Option<Arc<str>>,
    /// For tracing.
    pub request_id: Option<Arc<str>>,
    /// For tracing.
    pub deployment_id: Option<Arc<str>>,
    /// The upstream it is for.
    pub upstream: Option<Arc<str>>,
    /// To be started before this time.
    pub deadline_at: Option<Time>,
    /// Attempts in all.
    pub max_attempts: u16,
    /// The hash of what makes it the same request. Left out of pages, which have no payloads.
    pub fingerprint: Option<u128>,
}

/// Which operations to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this group.
    pub group: Option<Arc<str>>,
    /// Only in these states; in any when there is none.
    pub states: Vec<State>,
    /// Only of this kind.
    pub kind: Option<Arc<str>>,
    /// Only for this upstream.
    pub upstream: Option<Arc<str>>,
    /// Only the one that was accepted under this key, while that is remembered.
    pub dedupe_key: Option<Arc<str>>,
    /// Only those accepted at this time or later.
    pub created_after: Option<Time>,
    /// Only those accepted earlier.
    pub created_before: Option<Time>,
    /// Only those accepted before this one.
    pub before: Option<OperationId>,
    /// At most this many.
    pub limit: usize,
}

/// Which groups to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupFilter {
    /// Every group that has operations or is stopped.
    #[default]
    All,
    /// Those that wait for a person, held or paused.
    Stopped,
    /// Those that an unknown outcome or a failure holds, and that no one paused.
    Held,
    /// Those that a person paused.
    Paused,
}

/// A page of operations.
#[derive(Clone, Debug, Default)]
pub struct OperationPage {
    /// Newest first.
    pub operations: Vec<OperationView>,
    /// Where to go on; `None` when there is no more. A page that looked at a bounded number of operations can be empty
    /// and have more behind it.
    pub next: Option<OperationId>,
}

/// Why an operation does not run, with the sentence that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// `running`, `turn`, `worker`, `time`, `bucket`, `lease`, `person`, `nothing` (it has ended).
    pub waiting_for: &'static str,
    /// The limit, or the person who paused it.
    pub name: Option<Arc<str>>,
    /// Until when, as far as that is known; for one that waits its turn, when that is expected.
    pub until: Option<Time>,
    /// When it is expected to start: an estimate of what the known limits allow.
    pub starts_at: Option<Time>,
    /// The operation it is behind.
    pub behind: Option<OperationId>,
    /// One sentence: cause, holder, end.
    pub because: String,
    /// The same for machines; `None` when it has ended.
    pub cause: Option<Cause>,
}

/// A page of groups.
#[derive(Clone, Debug, Default)]
pub struct GroupPage {
    /// By name, each with what it waits for.
    pub groups: Vec<(GroupView, Option<Reason>)>,
    /// Where to go on.
    pub next: Option<Arc<str>>,
}
