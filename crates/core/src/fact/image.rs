//! What a snapshot holds of each part of the model: the counters, and the state of limits, groups,
//! claims and operations. The facts that carry them are in [`Fact`](super::Fact).

use std::sync::Arc;

use super::{AcceptedOperation, LimitShape, LimitSource};
use crate::alternatives::Alternatives;
use crate::fault::Fault;
use crate::id::{Fence, Seq, Turn};
use crate::time::Time;

/// The partition's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The sequence number of the next operation.
    pub next_seq: Seq,
    /// The fence of the next claim.
    pub next_fence: Fence,
    /// The next turn.
    pub next_turn: Turn,
    /// The latest time seen.
    pub clock: Time,
    /// Operations ended so far, by end state: succeeded, failed, canceled.
    pub ended: [u64; 3],
}

/// The state of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitImage {
    /// Its name.
    pub limit: Arc<str>,
    /// Its shape.
    pub shape: LimitShape,
    /// The shape last set by the configuration.
    pub configured: Option<LimitShape>,
    /// Where the figures come from.
    pub source: LimitSource,
    /// What is left (drip, window) or allowed concurrently (gate, breaker; 0 means unlimited).
    pub level: u64,
    /// The time at which `level` was computed (drip), or of the last failure (breaker).
    pub at: Time,
    /// The fraction of a micro-token left over from the last refill (drip); in microseconds, the
    /// observed length (window) or how long operations took lately (breaker).
    pub carry: u64,
    /// When the next window starts.
    pub reset_at: Time,
    /// Whether a window has been learned.
    pub known: bool,
    /// The time until which it is closed.
    pub frozen_until: Time,
    /// The total ever granted, or the number of times that a breaker opened, wrapping.
    pub granted: u64,
    /// The number of consecutive throttled responses, or of a breaker's failures.
    pub throttles: u32,
    /// Calls that may not have reached the upstream: the time by which they have, their cost, their
    /// grant.
    pub transit: Vec<(Time, u64, u64)>,
}

/// Why a limit is closed: the calls that closed it, from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitClosure {
    /// When a call first closed it. No call that charges it has succeeded since.
    pub since: Time,
    /// When a call last closed it.
    pub at: Time,
    /// The operation of that call.
    pub seq: Seq,
    /// When that operation was accepted.
    pub accepted_at: Time,
    /// Why that call did not succeed.
    pub fault: Option<Fault>,
}

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupImage {
    /// Its name.
    pub group: Arc<str>,
    /// Its turn.
    pub turn: Turn,
    /// The time before which its head must not start.
    pub not_before: Time,
    /// Who paused it, when and why.
    pub paused: Option<(Arc<str>, Time, Arc<str>)>,
    /// Set when it waits for an operator after a failure or an unknown outcome.
    pub held: Option<GroupHold>,
    /// Its head's claim: fence, expiry, and the total granted for each charge at that time.
    pub running: Option<(Fence, Time, Vec<u64>)>,
}

/// A claim that awaits its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitingImage {
    /// When the job was accepted.
    pub since: Time,
    /// When its outcome becomes unknown.
    pub until: Time,
    /// When to poll next, if ever.
    pub poll_at: Option<Time>,
    /// The number of consecutive polls that found out nothing.
    pub failed_polls: u16,
    /// Whether a worker is polling now.
    pub polling: bool,
    /// Whether a cancel was passed on to the executor.
    pub cancel_sent: bool,
}

/// Why a group waits for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHold {
    /// The operation that caused it.
    pub seq: Seq,
    /// When the hold began.
    pub since: Time,
    /// Whether its outcome is unknown; otherwise it failed.
    pub unknown: bool,
    /// The fault that caused it.
    pub fault: Option<Fault>,
}

/// The alternatives of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainImage {
    /// The operation.
    pub seq: Seq,
    /// The alternatives that are left.
    pub alternatives: Alternatives,
    /// The alternative of its claim, and when it was picked.
    pub picked: Option<(Arc<str>, Time)>,
    /// The alternatives that failed, and why.
    pub failed: Vec<(Arc<str>, Fault)>,
}

/// The state of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationImage {
    /// The operation as accepted, without its key.
    pub accepted: AcceptedOperation,
    /// Attempts spent.
    pub attempt: u16,
    /// Whether the next worker must reconcile first.
    pub reconcile_first: bool,
    /// Whether a cancel was requested.
    pub cancel_requested: bool,
    /// The last fault.
    pub fault: Option<Fault>,
}
