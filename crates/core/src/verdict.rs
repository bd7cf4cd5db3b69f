//! What an answer means for the operation (`Verdict`) and what it says about limits (`Hint`). Being throttled is
//! a value with a time in it, not an error.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::time::Time;

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It happened.
    Done,
    /// The upstream asked to wait; no attempt is spent.
    Throttled {
        /// How long it said, if it said.
        after: Option<Duration>,
        /// The limit that is closed, by name; `None` closes every bucket the operation charges. A cap closes nothing: the
        /// operation's group alone waits.
        scope: Option<Arc<str>>,
        /// What it said.
        fault: Fault,
    },
    /// It did not happen and may be tried again; an attempt is spent.
    Retry {
        /// Not before this long, if the upstream said.
        after: Option<Duration>,
        /// What went wrong.
        fault: Fault,
    },
    /// It will not happen; repeating is pointless.
    Rejected(Fault),
    /// The request left and no answer came: it may have happened.
    Unknown(Fault),
    /// It was not sent, and somebody else should try (a worker that drains).
    Returned,
    /// A person's cancel reached it.
    Canceled {
        /// Whether the request may have left.
        may_have_happened: bool,
    },
}

/// What an answer said about one limit. Fields that it did not mention are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The limit's name.
    pub limit: Arc<str>,
    /// What the upstream says is left, in micro-tokens.
    pub remaining: Option<u64>,
    /// The upstream's capacity, in micro-tokens.
    pub capacity: Option<u64>,
    /// The upstream's refill, in micro-tokens per second.
    pub refill_per_s: Option<u64>,
    /// When a window starts anew, or a gate opens again.
    pub reset_at: Option<Time>,
    /// What the call really cost, in micro-tokens.
    pub spent: Option<u64>,
}
