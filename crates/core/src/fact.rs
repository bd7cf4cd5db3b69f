//! What the log keeps: facts that have been decided. The model changes only by absorbing facts, so absorbing the
//! same ones again gives the same state. A snapshot is a shorter list of facts that says the same.
//! Facts name groups, kinds and limits by their names and hold no payload.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::id::{Fence, Seq, Turn};
use crate::operation::{Charge, DedupeEntry, OnFailure, OnUnknown};
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::Hint;

/// One thing that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An operation joined the end of its group.
    Accepted(Box<AcceptedOperation>),
    /// An operation was handed to a worker; its charges were taken.
    Claimed {
        /// Which.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When.
        at: Time,
        /// When the claim runs out.
        until: Time,
    },
    /// A worker still has it.
    Renewed {
        /// Which.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When the claim runs out now.
        until: Time,
    },
    /// The call of a claim left: what it charges counts from then. Said of claims that charge a
    /// budget, and only for as long as they are under way.
    Sent {
        /// Which.
        seq: Seq,
        /// The claim's fence.
        fence: Fence,
        /// When.
        at: Time,
    },
    /// A claim ended.
    Settled(Box<SettledClaim>),
    /// An operation that was not running ended.
    Ended {
        /// Which.
        seq: Seq,
        /// When.
        at: Time,
        /// How.
        state: EndState,
        /// Whether its group waits for a person now.
        hold: bool,
    },
    /// Somebody wants a running operation to stop.
    CancelRequested {
        /// Which.
        seq: Seq,
    },
    /// A held operation of unknown outcome goes on.
    Repeated {
        /// Which.
        seq: Seq,
        /// When.
        at: Time,
    },
    /// A group was stopped by a person.
    Paused {
        /// Which.
        group: Arc<str>,
        /// When.
        at: Time,
        /// Who.
        by: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// A group that was paused or held goes on.
    Resumed {
        /// Which.
        group: Arc<str>,
        /// When.
        at: Time,
    },
    /// A limit was made or changed.
    LimitSet {
        /// Which.
        limit: Arc<str>,
        /// What it is now.
        shape: LimitShape,
        /// Who said so.
        source: LimitSource,
        /// When.
        at: Time,
    },
    /// A limit that an upstream had closed was opened by a person.
    Thawed {
        /// Which.
        limit: Arc<str>,
        /// When.
        at: Time,
    },
    /// A limit that a call had opened went: nobody uses it, and it has nothing to remember.
    LimitGone {
        /// Which.
        limit: Arc<str>,
        /// When.
        at: Time,
    },
    /// Part of a snapshot: the counters.
    Counters(Counters),
    /// Part of a snapshot: a limit as it stands.
    LimitImage(Box<LimitImage>),
    /// Part of a snapshot: a group as it stands. Its operations follow in order.
    GroupImage(Box<GroupImage>),
    /// Part of a snapshot: an operation as it stands, at the end of the group that came last.
    OperationImage(Box<OperationImage>),
    /// Part of a snapshot: a key that is remembered.
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
    /// Its place in the partition.
    pub seq: Seq,
    /// When.
    pub at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// Who carries it.
    pub kind: Arc<str>,
    /// What it charges.
    pub charges: Vec<Charge>,
    /// Not to be started after this.
    pub deadline: Option<Time>,
    /// Not to be started before this.
    pub not_before: Option<Time>,
    /// Attempts in all.
    pub max_attempts: u16,
    /// Its priority.
    pub priority: u8,
    /// What follows an unknown outcome.
    pub on_unknown: OnUnknown,
    /// What follows a failure.
    pub on_failure: OnFailure,
    /// The caller's key.
    pub dedupe: Option<DedupeEntry>,
    /// Whether it had ended before and runs again.
    pub is_rerun: bool,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledClaim {
    /// Which operation.
    pub seq: Seq,
    /// The claim's fence.
    pub fence: Fence,
    /// When.
    pub at: Time,
    /// What follows.
    pub effect: SettleEffect,
    /// Why it was not a success.
    pub fault: Option<Fault>,
    /// What the answer said about limits.
    pub hints: Vec<Hint>,
}

/// What follows a settled claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleEffect {
    /// It leaves its group.
    Ended {
        /// How.
        state: EndState,
        /// Whether the group waits for a person now.
        hold: bool,
    },
    /// It runs again, not before this; an attempt was spent.
    Retry {
        /// Not before.
        at: Time,
        /// Whether the worker must look first whether it happened already.
        reconcile_first: bool,
    },
    /// These limits are closed; no attempt was spent.
    Throttled {
        /// Until when.
        until: Time,
        /// Which; with none of them the group alone waits.
        closed: Vec<Arc<str>>,
    },
    /// Its outcome is unknown and a person must say.
    Held,
    /// It was not sent; what it was charged is given back.
    Returned,
}

/// What a limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitShape {
    /// A budget that refills evenly. Micro-tokens.
    Drip {
        /// The most it holds.
        capacity: u64,
        /// What comes back each second.
        refill_per_s: u64,
        /// What is left alone, to cover the difference between two clocks.
        margin: u64,
    },
    /// A budget that comes back all at once. Micro-tokens.
    Window {
        /// What a window allows; 0 while that is not known.
        limit: u64,
        /// How long a window is; zero while that is not known.
        period: Duration,
    },
    /// No budget: only closed when the upstream says so.
    Gate,
    /// A number of places to run at once.
    Cap {
        /// How many.
        at_once: u32,
    },
}

/// Where a limit's figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The configuration.
    Config,
    /// A person, at run time.
    Operator,
    /// The upstream's own answers.
    Learned,
}

/// The partition's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The next operation's place.
    pub next_seq: Seq,
    /// The next claim's fence.
    pub next_fence: Fence,
    /// The next ticket.
    pub next_turn: Turn,
    /// The latest time seen.
    pub clock: Time,
    /// Ended so far, by end state: succeeded, failed, canceled.
    pub ended: [u64; 3],
}

/// A limit as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitImage {
    /// Its name.
    pub limit: Arc<str>,
    /// What it is.
    pub shape: LimitShape,
    /// What the configuration last said it is.
    pub configured: Option<LimitShape>,
    /// Where the figures come from.
    pub source: LimitSource,
    /// What is left (drip, window) or allowed at once (gate; 0 is everything).
    pub level: u64,
    /// When `level` was true.
    pub at: Time,
    /// The part of a micro-token that the last refill left over.
    pub carry: u64,
    /// When a window starts anew.
    pub reset_at: Time,
    /// Whether a window has been learned.
    pub known: bool,
    /// Closed until then.
    pub frozen_until: Time,
    /// All that was ever granted, wrapping.
    pub granted: u64,
    /// Answers in a row that said to wait.
    pub throttles: u32,
    /// Calls that may not have reached the upstream: by when they have, what they cost, their grant.
    pub transit: Vec<(Time, u64, u64)>,
}

/// A group as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupImage {
    /// Its name.
    pub group: Arc<str>,
    /// Its ticket.
    pub turn: Turn,
    /// Its head does not start before this.
    pub not_before: Time,
    /// Who stopped it, when and why.
    pub paused: Option<(Arc<str>, Time, Arc<str>)>,
    /// Whether it waits for a person after a failure or an unknown outcome.
    pub held: Option<GroupHold>,
    /// Its head's claim: fence, end, and what had been granted of each charge then.
    pub running: Option<(Fence, Time, Vec<u64>)>,
}

/// Why a group waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHold {
    /// The operation that caused it.
    pub seq: Seq,
    /// Since when.
    pub since: Time,
    /// Whether that one's outcome is unknown; otherwise it failed.
    pub unknown: bool,
    /// What went wrong.
    pub fault: Option<Fault>,
}

/// An operation as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationImage {
    /// As it was accepted, without its key.
    pub accepted: AcceptedOperation,
    /// Attempts spent.
    pub attempt: u16,
    /// Whether the next worker must look first.
    pub reconcile_first: bool,
    /// Whether somebody wants it to stop.
    pub cancel_requested: bool,
    /// What went wrong last.
    pub fault: Option<Fault>,
}
