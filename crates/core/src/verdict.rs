//! The meaning of a response for the operation (`Verdict`) and what it says about limits (`Hint`).
//! Throttling is a value with a time in it, not an error.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::time::Time;

/// The verdict on one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call succeeded.
    Done,
    /// The upstream accepted the job and finishes it later: the operation awaits its completion,
    /// with its slots and without a worker. From a poll: the job is not finished.
    Accepted {
        /// How long to wait before the next poll; `None` when only a completion can end it.
        poll_after: Option<Duration>,
        /// How long the job may take, at most [`AWAIT_MAX`](crate::bounds::AWAIT_MAX); then its
        /// outcome is unknown. Only the first response sets it.
        timeout: Duration,
    },
    /// The upstream asked to wait; no attempt is spent.
    Throttled {
        /// The time the upstream gave, if any.
        after: Option<Duration>,
        /// The name of the closed limit; `None` closes every bucket the operation charges. A cap
        /// cannot be closed: only the operation's group waits.
        scope: Option<Arc<str>>,
        /// The upstream's message.
        fault: Fault,
    },
    /// The call did not take effect, or a repeat does no harm: it may be retried, and an attempt is
    /// spent.
    Retry {
        /// The shortest delay before the retry, if the upstream gave one.
        after: Option<Duration>,
        /// What failed.
        fault: Fault,
    },
    /// The call cannot succeed; a retry is pointless.
    Rejected(Fault),
    /// The request was sent, and no response says what it did: it may have taken effect. From a
    /// poll: it found out nothing, and the operation keeps awaiting.
    Unknown(Fault),
    /// The worker that had it is gone: whether it was sent, and what it did, is not known. Followed
    /// by what follows `Unknown`, but no fault of the upstream.
    Lost(Fault),
    /// A poll found out nothing, and the operation keeps awaiting. Polled again later each time.
    PollFailed {
        /// The shortest time until the next poll.
        every: Duration,
        /// What failed.
        fault: Fault,
    },
    /// It was not sent, and another worker should try (the worker is draining).
    Returned,
    /// It was not sent: the executor is not configured for what was granted. The next alternative
    /// is used; if there is none, the operation waits for
    /// [`UNAVAILABLE_WAIT`](crate::bounds::UNAVAILABLE_WAIT).
    Unavailable(Fault),
    /// An operator's cancel reached it.
    Canceled {
        /// Whether the request may have been sent.
        may_have_happened: bool,
    },
}

/// What a failed attempt counts against, of the breakers that its operation charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Blame {
    /// All of them, when the class of the fault is the provider's own: rate limited, transient,
    /// forbidden.
    #[default]
    ByClass,
    /// None of them, whatever the class.
    NoOne,
    /// The breaker of this name, whatever the class.
    Limit(Arc<str>),
}

/// What a response said about one limit. Fields it did not mention are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The limit's name.
    pub limit: Arc<str>,
    /// The remaining budget reported by the upstream, in micro-tokens.
    pub remaining: Option<u64>,
    /// The upstream's capacity, in micro-tokens.
    pub capacity: Option<u64>,
    /// The upstream's refill, in micro-tokens per second.
    pub refill_per_s: Option<u64>,
    /// When the next window starts, or a gate reopens.
    pub reset_at: Option<Time>,
    /// The actual cost of the call, in micro-tokens.
    pub spent: Option<u64>,
}
