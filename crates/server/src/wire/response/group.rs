//! Groups as JSON: the state of each, and what it waits for.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate::{AlikeGroups, OperationOutline, OperationView, Reason};
use tidegate_core::fact::GroupHold;
use tidegate_core::id::Partition;
use tidegate_core::model::{ActiveOperation, GroupView};
use tidegate_core::{OperationId, Seq, Time};

use super::{FaultOut, OperationOut, RequestOut, WhyOut};
use crate::wire::time::Timestamp;

#[derive(Serialize)]
pub(crate) struct GroupOut<'a> {
    group: &'a str,
    state: &'static str,
    depth: u32,
    head: Option<HeadOut<'a>>,
    why: Option<WhyOut<'a>>,
    paused: Option<PauseOut<'a>>,
    held: Option<HeldOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Vec<OperationOut<'a>>>,
    /// When the last operation of its queue is expected to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    drains_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alike: Option<AlikeOut>,
}

/// The groups that one stands for, all of which wait for the same.
#[derive(Serialize)]
struct AlikeOut {
    /// The same for the same cause.
    cause: String,
    groups: u64,
    operations: u64,
}

impl<'a> GroupOut<'a> {
    pub(crate) fn new(partition: Partition, view: &'a GroupView, why: Option<&'a Reason>) -> Self {
        let paused = view.paused.as_ref();
        Self {
            group: &view.name,
            state: group_state(view),
            depth: view.depth,
            head: view.head.as_ref().map(|head| HeadOut::new(partition, head)),
            why: why.map(WhyOut::new),
            paused: paused.map(|(by, since, reason)| PauseOut { by, since: Timestamp(*since), reason }),
            held: view.held.as_ref().map(HeldOut::new),
            line: None,
            drains_at: None,
            alike: None,
        }
    }

    /// The operations that it shows and of which the model does not know everything.
    pub(crate) fn seqs_of(view: &GroupView) -> impl Iterator<Item = Seq> {
        let head = view.head.as_ref().map(|head| head.seq);
        head.into_iter().chain(view.held.as_ref().map(|held| held.seq))
    }

    /// Adds what the store knows of its operations.
    pub(crate) fn with_outlines(
        mut self,
        view: &GroupView,
        outlines: &'a BTreeMap<Seq, OperationOutline>,
    ) -> Self {
        let outline = |seq| outlines.get(&seq);
        if let (Some(head), Some(shown)) = (&mut self.head, view.head.as_ref().and_then(|at| outline(at.seq)))
        {
            head.upstream = shown.upstream.as_deref();
            head.request = shown.request.as_ref().map(RequestOut::line);
        }
        if let (Some(held), Some(cause)) = (&mut self.held, &view.held) {
            held.operation = outline(cause.seq).map(|cause| cause.id.to_string());
        }
        for item in self.line.iter_mut().flatten() {
            item.add_outline(outlines.get(&item.id.seq()));
        }
        self
    }

    /// Adds when its queue is expected to be empty.
    pub(crate) fn with_drains_at(mut self, drains_at: Option<Time>) -> Self {
        self.drains_at = drains_at.map(Timestamp);
        self
    }

    /// Adds the groups that it stands for.
    pub(crate) fn with_alike(mut self, alike: Option<&AlikeGroups>) -> Self {
        self.alike = alike.map(|alike| {
            let AlikeGroups { cause, groups, operations, .. } = *alike;
            AlikeOut { cause: cause.to_string(), groups, operations }
        });
        self
    }

    /// Adds the head of its queue.
    pub(crate) fn with_line(mut self, line: &'a [OperationView]) -> Self {
        self.line = Some(line.iter().map(OperationOut::line).collect());
        self
    }

    /// An empty group.
    pub(crate) const fn idle(name: &'a str) -> Self {
        let (group, state) = (name, "idle");
        let (head, why, paused, held) = (None, None, None, None);
        let (line, drains_at, alike) = (None, None, None);
        Self { group, state, depth: 0, head, why, paused, held, line, drains_at, alike }
    }
}

/// The state of a group. An operator's pause has precedence.
fn group_state(view: &GroupView) -> &'static str {
    match (&view.paused, &view.held, &view.head) {
        (Some(_), ..) => "paused",
        (None, Some(_), _) => "held",
        (None, None, Some(head)) => head.state.as_str(),
        (None, None, None) => "idle",
    }
}

#[derive(Serialize)]
struct HeadOut<'a> {
    id: String,
    state: &'static str,
    kind: &'a str,
    attempt: u16,
    created_at: Timestamp,
    fault: Option<FaultOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestOut<'a>>,
}

impl<'a> HeadOut<'a> {
    fn new(partition: Partition, head: &'a ActiveOperation) -> Self {
        Self {
            id: OperationId::new(head.at, partition, head.seq).to_string(),
            state: head.state.as_str(),
            kind: &head.kind,
            attempt: head.attempt,
            created_at: Timestamp(head.at),
            fault: head.fault.as_ref().map(FaultOut::new),
            upstream: None,
            request: None,
        }
    }
}

#[derive(Serialize)]
struct PauseOut<'a> {
    by: &'a str,
    since: Timestamp,
    reason: &'a str,
}

#[derive(Serialize)]
struct HeldOut<'a> {
    /// The operation that failed or whose outcome is unknown; null when the store no longer has it.
    operation: Option<String>,
    since: Timestamp,
    unknown: bool,
    fault: Option<FaultOut<'a>>,
}

impl<'a> HeldOut<'a> {
    fn new(held: &'a GroupHold) -> Self {
        Self {
            operation: None,
            since: Timestamp(held.since),
            unknown: held.unknown,
            fault: held.fault.as_ref().map(FaultOut::new),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct GroupsOut<'a> {
    pub groups: Vec<GroupOut<'a>>,
    pub next_cursor: Option<String>,
    /// The next page, by the name it had before there were cursors.
    pub next: Option<&'a str>,
}
