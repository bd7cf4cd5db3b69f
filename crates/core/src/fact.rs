//! Facts: the decisions that the log keeps. The model changes only by absorbing facts, so absorbing
//! the same facts again gives the same state. A snapshot is a shorter, equivalent list of facts.
//! Facts refer to groups, kinds and limits by name and hold no payload.

mod image;

use std::sync::Arc;
use std::time::Duration;

pub use image::{
    AwaitingImage, ChainImage, Counters, GroupHold, GroupImage, LimitClosure, LimitImage, OperationImage,
};

use crate::alternatives::Alternatives;
use crate::breaker::{BreakerReport, CooldownLadder};
use crate::fault::Fault;
use crate::id::{Fence, Seq};
use crate::operation::{Charge, DedupeEntry, OnFailure, OnUnknown};
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::Hint;

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An operation joined its group.
    Accepted(Box<AcceptedOperation>),
    /// An operation that was just accepted has alternatives, each with all that it charges.
    Chained {
        /// The operation.
        seq: Seq,
        /// Its alternatives.
        alternatives: Box<Alternatives>,
    },
    /// An operation that already has alternatives was given others. Its claim, if there is one,
    /// keeps the alternative that it uses, which is among them.
    Rechained {
        /// The operation.
        seq: Seq,
        /// The alternatives that it has left.
        alternatives: Box<Alternatives>,
    },
    /// An earlier run of an operation that was just accepted again may have taken effect.
    Doubted {
        /// The operation.
        seq: Seq,
        /// What that run left.
        fault: Box<Fault>,
    },
    /// An alternative was picked for an operation, which is claimed with it right after.
    Picked {
        /// The operation.
        seq: Seq,
        /// The name of the alternative.
        alternative: Arc<str>,
        /// When it was picked.
        at: Time,
    },
    /// A worker claimed an operation; its charges were taken.
    Claimed {
        /// The operation.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When it was claimed.
        at: Time,
        /// When the claim expires.
        until: Time,
    },
    /// A worker renewed its claim.
    Renewed {
        /// The operation.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// The new expiry of the claim.
        until: Time,
    },
    /// The call of a claim was sent: its charges count from then. Recorded only for claims that
    /// charge a budget, and only while they are in flight.
    Sent {
        /// The operation.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When it was sent.
        at: Time,
    },
    /// A worker took an awaiting claim again, to poll its job or to pass on a cancel; the charges
    /// of its buckets were taken again, and its slots of caps stayed. The worker has the next
    /// fence.
    Polled {
        /// The operation.
        seq: Seq,
        /// The claim's fence, unchanged.
        fence: Fence,
        /// When it was taken.
        at: Time,
        /// When the worker's lease expires.
        until: Time,
    },
    /// The outcome of a claim says something about the health of a provider: a breaker that it
    /// charges learns from it. Recorded right before the settlement.
    Reported {
        /// The operation.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When it was reported.
        at: Time,
        /// The name of the breaker.
        limit: Arc<str>,
        /// What it learns.
        report: BreakerReport,
    },
    /// A claim ended, or awaits its completion.
    Settled(Box<SettledClaim>),
    /// An operation that was not running ended.
    Ended {
        /// The operation.
        seq: Seq,
        /// When it ended.
        at: Time,
        /// How it ended.
        state: EndState,
        /// Whether its group now waits for an operator.
        hold: bool,
    },
    /// A cancel was requested for a running operation.
    CancelRequested {
        /// The operation.
        seq: Seq,
    },
    /// A held operation of unknown outcome is repeated.
    Repeated {
        /// The operation.
        seq: Seq,
        /// When it was resolved.
        at: Time,
    },
    /// An operation that a response made wait may start at once: what it waited for is over.
    Woken {
        /// The operation.
        seq: Seq,
        /// When it was woken.
        at: Time,
    },
    /// An operator paused a group.
    Paused {
        /// The group.
        group: Arc<str>,
        /// When it was paused.
        at: Time,
        /// Who paused it.
        by: Arc<str>,
        /// The reason given.
        reason: Arc<str>,
    },
    /// A paused or held group resumed.
    Resumed {
        /// The group.
        group: Arc<str>,
        /// When it resumed.
        at: Time,
    },
    /// A limit was created or changed.
    LimitSet {
        /// The name of the limit.
        limit: Arc<str>,
        /// Its new shape.
        shape: LimitShape,
        /// Where its figures come from.
        source: LimitSource,
        /// When it was set.
        at: Time,
    },
    /// An operator reopened a limit that an upstream had closed, or ended the cooldown of a
    /// breaker.
    Thawed {
        /// The name of the limit.
        limit: Arc<str>,
        /// When it was reopened.
        at: Time,
    },
    /// A limit that a call had opened was removed: no operation uses it, and it has no state to
    /// keep.
    LimitGone {
        /// The name of the limit.
        limit: Arc<str>,
        /// When it was removed.
        at: Time,
    },
    /// Part of a snapshot: the counters.
    Counters(Counters),
    /// Part of a snapshot: the state of a limit.
    LimitImage(Box<LimitImage>),
    /// Part of a snapshot: why a limit is closed.
    ClosureImage {
        /// The name of the limit.
        limit: Arc<str>,
        /// Why it is closed.
        closure: Box<LimitClosure>,
    },
    /// Part of a snapshot: the state of a group. Its operations follow in order.
    GroupImage(Box<GroupImage>),
    /// Part of a snapshot: the claim of the last group awaits its completion. Its operations
    /// follow.
    AwaitingImage(AwaitingImage),
    /// Part of a snapshot: a worker polls the job of that claim.
    PollImage {
        /// The fence of the worker.
        fence: Fence,
    },
    /// Part of a snapshot: the state of an operation, appended to the last group.
    OperationImage(Box<OperationImage>),
    /// Part of a snapshot: the alternatives of the last operation.
    ChainImage(Box<ChainImage>),
    /// Part of a snapshot: a remembered key.
    KeyImage {
        /// The operation it belongs to.
        seq: Seq,
        /// The key.
        dedupe: DedupeEntry,
    },
}

/// An operation that was accepted, or reopened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedOperation {
    /// Its sequence number in the partition.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// The kind of worker that executes it.
    pub kind: Arc<str>,
    /// What it charges.
    pub charges: Vec<Charge>,
    /// The time after which it must not start.
    pub deadline: Option<Time>,
    /// The time before which it must not start.
    pub not_before: Option<Time>,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// Its priority.
    pub priority: u8,
    /// What to do after an unknown outcome.
    pub on_unknown: OnUnknown,
    /// What to do after a failure.
    pub on_failure: OnFailure,
    /// The caller's dedupe key.
    pub dedupe: Option<DedupeEntry>,
    /// Whether it had ended before, and where it joined its group.
    pub acceptance: Acceptance,
}

/// Why an operation joins its group, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is new, and the last one.
    New,
    /// It had ended and runs again, as the last one.
    Rerun,
    /// It had ended and held its group, and runs again as the first one.
    RerunFirst,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledClaim {
    /// The operation.
    pub seq: Seq,
    /// The claim's fence.
    pub fence: Fence,
    /// When it was settled.
    pub at: Time,
    /// What follows.
    pub effect: SettleEffect,
    /// Why it did not succeed.
    pub fault: Option<Fault>,
    /// What the response said about limits.
    pub hints: Vec<Hint>,
}

/// What follows a settled claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleEffect {
    /// The operation leaves its group.
    Ended {
        /// How it ended.
        state: EndState,
        /// Whether the group now waits for an operator.
        hold: bool,
    },
    /// The operation is retried; an attempt was spent.
    Retry {
        /// The earliest time of the retry.
        at: Time,
        /// Whether the worker must first check whether the call already took effect.
        reconcile_first: bool,
    },
    /// These limits are closed; no attempt was spent.
    Throttled {
        /// When they reopen.
        until: Time,
        /// The closed limits; when empty, only the group waits.
        closed: Vec<Arc<str>>,
    },
    /// Its outcome is unknown and an operator must resolve it.
    Held,
    /// It was not sent; its charges are returned. A claim that was polled awaits its completion
    /// as before.
    Returned,
    /// The claim awaits its completion. It keeps its fence and its slots of caps.
    Awaiting {
        /// When to poll next, if ever.
        poll_at: Option<Time>,
        /// When its outcome becomes unknown.
        until: Time,
    },
    /// The alternative that it used failed and is struck out; the next one is tried at once, at the
    /// group's old turn. An attempt was spent.
    NextAlternative,
}

/// The shape of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitShape {
    /// A budget that refills evenly, in micro-tokens.
    Drip {
        /// The capacity.
        capacity: u64,
        /// The refill per second.
        refill_per_s: u64,
        /// The reserve that is never granted, to cover the difference between two clocks.
        margin: u64,
    },
    /// A budget that refills all at once, in micro-tokens.
    Window {
        /// The budget of one window; 0 while it is unknown.
        limit: u64,
        /// The length of a window; zero while it is unknown.
        period: Duration,
    },
    /// No budget: closed only when the upstream says so.
    Gate,
    /// A maximum number of concurrent calls.
    Cap {
        /// The number of slots.
        at_once: u32,
    },
    /// The health of a provider: closed to calls for a while after failures.
    Breaker {
        /// How long it cools.
        ladder: CooldownLadder,
    },
}

/// Where a limit's figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The configuration.
    Config,
    /// An operator, at run time.
    Operator,
    /// The upstream's responses.
    Learned,
}
