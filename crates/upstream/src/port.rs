//! The port that every dialect implements: check a payload before it is accepted, send it once when
//! it is taken. When, how often and in which order calls are made is decided elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::alternatives::Alternatives;
use tidegate_core::fact::LimitShape;
use tidegate_core::{Blame, Charge, Fault, Fence, Hint, OnUnknown, OperationId, Time, Verdict};
use tidegate_encoding::json::hash_by_value;
use tokio::sync::broadcast;

pub use crate::field_refusal::FieldRefusal;
use crate::request::{RequestLine, RequestView};

/// One attempt at a call.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The accepted payload, as `check` saw it.
    pub payload: &'a [u8],
    /// The number of this attempt; the first is 1. One that was throttled has the same number as
    /// the next.
    pub attempt: u16,
    /// Identifies this attempt among those of its operation.
    pub fence: Fence,
    /// Whether the last attempt's outcome is unknown: check before anything is sent again.
    pub reconcile_first: bool,
    /// Whether an earlier attempt may have taken effect, or may still be in progress.
    pub in_doubt: bool,
    /// What follows when the outcome of this attempt is unknown.
    pub on_unknown: OnUnknown,
    /// When the attempt starts.
    pub now: Time,
    /// The time after which no response is awaited.
    pub deadline: Option<Time>,
    /// The operation's id; sent along where the upstream accepts it.
    pub operation: &'a str,
    /// Authorizes the completion of this attempt from outside; `None` where none is possible. A
    /// secret.
    pub completion_token: Option<&'a str>,
    /// The alternative that was granted, if the call has some; of a poll, the one that accepted the
    /// job.
    pub alternative: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// The first attempt at sending a payload, without a deadline.
    #[must_use]
    pub fn new(operation: &'a str, payload: &'a [u8], now: Time) -> Self {
        Self {
            payload,
            attempt: 1,
            fence: Fence(0),
            reconcile_first: false,
            in_doubt: false,
            on_unknown: OnUnknown::default(),
            now,
            deadline: None,
            operation,
            completion_token: None,
            alternative: None,
        }
    }

    /// Sets the payload.
    #[must_use]
    pub const fn with_payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub const fn with_attempt(mut self, attempt: u16) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets what identifies the attempt.
    #[must_use]
    pub const fn with_fence(mut self, fence: Fence) -> Self {
        self.fence = fence;
        self
    }

    /// Sets whether to check first whether an earlier attempt took effect.
    #[must_use]
    pub const fn with_reconcile_first(mut self, reconcile_first: bool) -> Self {
        self.reconcile_first = reconcile_first;
        self
    }

    /// Sets whether an earlier attempt may have taken effect, or may still be in progress.
    #[must_use]
    pub const fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    /// Sets what follows an unknown outcome.
    #[must_use]
    pub const fn with_on_unknown(mut self, on_unknown: OnUnknown) -> Self {
        self.on_unknown = on_unknown;
        self
    }

    /// Sets the time after which no response is awaited.
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Option<Time>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets the token that authorizes its completion from outside.
    #[must_use]
    pub fn with_completion_token(mut self, token: impl Into<Option<&'a str>>) -> Self {
        self.completion_token = token.into();
        self
    }

    /// Sets the alternative that was granted.
    #[must_use]
    pub fn with_alternative(mut self, alternative: impl Into<Option<&'a str>>) -> Self {
        self.alternative = alternative.into();
        self
    }
}

/// A job that the upstream accepted, and what was kept of it.
#[derive(Clone, Copy)]
pub struct AcceptedJob<'a> {
    /// When it was accepted; of one that uses an alternative, when that was picked.
    pub since: Time,
    /// The id by which the upstream knows it.
    pub external_id: Option<&'a str>,
    /// What the executor wanted to remember.
    pub memo: &'a [u8],
    /// Whether a cancel was requested, to be passed on.
    pub cancel_requested: bool,
}

/// What a callback in the service's own format says about its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackMeaning {
    /// The job succeeded.
    Succeeded,
    /// The job failed.
    Failed(Fault),
    /// Something happened, and the job is not known to have ended: it should be polled.
    NotFinished,
}

/// What to keep of a job that the upstream accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobNote {
    /// The id by which the upstream knows it; at most
    /// [`EXTERNAL_ID_LEN_MAX`](tidegate_core::bounds::EXTERNAL_ID_LEN_MAX) bytes are kept.
    pub external_id: Option<Arc<str>>,
    /// What the executor must remember until it ends; at most
    /// [`MEMO_LEN_MAX`](tidegate_core::bounds::MEMO_LEN_MAX) bytes.
    pub memo: Bytes,
    /// What it may have cost, in millionths of the unit that the executor counts in.
    pub cost: Option<u64>,
}

impl fmt::Debug for Call<'_> {
    /// Shows everything but the payload, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("operation", &self.operation)
            .field("attempt", &self.attempt)
            .field("look_first", &self.reconcile_first)
            .field("on_unknown", &self.on_unknown)
            .field("now", &self.now)
            .field("deadline", &self.deadline)
            .field("payload_len", &self.payload.len())
            .finish()
    }
}

/// The outcome of one attempt.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The verdict on the operation.
    pub verdict: Verdict,
    /// What the response said about limits.
    pub hints: Vec<Hint>,
    /// The encoded result to keep; empty when no response came.
    pub body: Bytes,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The cost of the call, if the dialect knows it; kept for analysis, and no limit depends on
    /// it. At most [`CHARGES_MAX`](tidegate_core::bounds::CHARGES_MAX) are kept for one call.
    pub spending: Vec<CallCost>,
    /// What to keep of a job that was accepted. From a poll it replaces what was kept before. Of a
    /// call with alternatives it is kept however the call ended.
    pub job: Option<JobNote>,
    /// Which breakers a failure counts against.
    pub blame: Blame,
}

/// What one call cost in one limit, in micro-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCost {
    /// The full name of the limit.
    pub limit: Arc<str>,
    /// What similar calls have in common, for people to read: a name, `#` and a short hash, as in
    /// `GetOrders#1f0c9a2b`. At most [`SHAPE_LEN_MAX`](tidegate_core::bounds::SHAPE_LEN_MAX) bytes;
    /// never a variable.
    pub shape: Arc<str>,
    /// The amount taken before it was sent.
    pub requested: u64,
    /// The actual cost, if the response reports it.
    pub actual: Option<u64>,
    /// What the limit restores per second, if the response reports it.
    pub restore_rate: Option<u64>,
}

impl Outcome {
    /// Creates an outcome with nothing but a verdict: no response came.
    #[must_use]
    pub const fn unanswered(verdict: Verdict) -> Self {
        Self {
            verdict,
            hints: Vec::new(),
            body: Bytes::new(),
            status: None,
            spending: Vec::new(),
            job: None,
            blame: Blame::ByClass,
        }
    }

    /// Sets the verdict.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// Sets what the response said about limits.
    #[must_use]
    pub fn with_hints(mut self, hints: Vec<Hint>) -> Self {
        self.hints = hints;
        self
    }

    /// Sets the encoded result to keep.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the status of the response.
    #[must_use]
    pub fn with_status(mut self, status: impl Into<Option<u16>>) -> Self {
        self.status = status.into();
        self
    }

    /// Sets the cost of the call.
    #[must_use]
    pub fn with_spending(mut self, spending: Vec<CallCost>) -> Self {
        self.spending = spending;
        self
    }

    /// Sets what to keep of a job that was accepted.
    #[must_use]
    pub fn with_job(mut self, job: impl Into<Option<JobNote>>) -> Self {
        self.job = job.into();
        self
    }

    /// Sets which breakers a failure counts against.
    #[must_use]
    pub fn with_blame(mut self, blame: Blame) -> Self {
        self.blame = blame;
        self
    }
}

impl fmt::Debug for Outcome {
    /// Shows everything but the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("verdict", &self.verdict)
            .field("hints", &self.hints)
            .field("status", &self.status)
            .field("spending", &self.spending)
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// The requirements of a valid payload. The default has no charge, and asks an operator after an
/// unknown outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRequirements {
    /// The charges to grant before it is sent.
    pub charges: Vec<Charge>,
    /// Those of the charged limits that are created with these shapes where no limit of that name
    /// exists.
    pub opens: Vec<(Arc<str>, LimitShape)>,
    /// The default for what follows an unknown outcome.
    pub on_unknown: OnUnknown,
    /// Whether the dialect can check whether an earlier attempt took effect.
    pub can_reconcile: bool,
    /// The ways to send it, of which one is granted: each with the charges that it has in addition.
    pub alternatives: Option<Alternatives>,
}

impl CallRequirements {
    /// Requirements with these charges.
    #[must_use]
    pub fn new(charges: Vec<Charge>) -> Self {
        Self { charges, ..Self::default() }
    }

    /// Sets which of the charged limits are created where they do not exist, with their shapes.
    #[must_use]
    pub fn with_opens(mut self, opens: Vec<(Arc<str>, LimitShape)>) -> Self {
        self.opens = opens;
        self
    }

    /// Sets the default for what follows an unknown outcome.
    #[must_use]
    pub const fn with_on_unknown(mut self, on_unknown: OnUnknown) -> Self {
        self.on_unknown = on_unknown;
        self
    }

    /// Sets whether the dialect can check whether an earlier attempt took effect.
    #[must_use]
    pub const fn with_can_reconcile(mut self, can_reconcile: bool) -> Self {
        self.can_reconcile = can_reconcile;
        self
    }

    /// Sets the ways to send it.
    #[must_use]
    pub fn with_alternatives(mut self, alternatives: Alternatives) -> Self {
        self.alternatives = Some(alternatives);
        self
    }
}

/// Whether two JSON texts have the same value.
pub(crate) fn is_same_json(one: &[u8], other: &[u8]) -> bool {
    one == other || hash_by_value(one).is_some_and(|hash| hash_by_value(other) == Some(hash))
}

/// A call in flight. Dropping it aborts the call; whether it took effect is then unknown.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A dialect: how calls of one kind are checked and sent.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use tidegate_core::{Charge, Verdict};
/// use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};
///
/// /// Prints lines, within a limit.
/// struct Printer;
///
/// impl Upstream for Printer {
///     fn check(
///         &self,
///         payload: &[u8],
///         _cost: &BTreeMap<String, u64>,
///     ) -> Result<CallRequirements, FieldRefusal> {
///         if payload.is_empty() {
///             return Err(FieldRefusal::new("request", "There is nothing to print."));
///         }
///         Ok(CallRequirements::new(vec![Charge::tokens("printer/lines", 1)]))
///     }
///
///     fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
///         Box::pin(async move {
///             println!("{}: {}", call.operation, String::from_utf8_lossy(call.payload));
///             Outcome::unanswered(Verdict::Done).with_body("printed")
///         })
///     }
/// }
/// ```
pub trait Upstream: Send + Sync {
    /// Determines the requirements of a payload. `cost` is given by the caller, in whole tokens by
    /// the limit's name.
    ///
    /// # Errors
    /// Names the invalid field.
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal>;

    /// Names the first field in which two payloads of this kind differ; `None` when they are the
    /// same request. By default they are compared as JSON, by value.
    fn difference(&self, one: &[u8], other: &[u8]) -> Option<&'static str> {
        (!is_same_json(one, other)).then_some("request")
    }

    /// Why a call with this payload cannot be made again for an operator who wants to run it again;
    /// `None` when it can.
    fn rerun_refusal(&self, _payload: &[u8]) -> Option<&'static str> {
        None
    }

    /// Whether callers submit operations of this kind themselves. Those of other kinds are made by
    /// the program. By default they do.
    fn is_submitted(&self) -> bool {
        true
    }

    /// The encoded response by which a job was accepted, from what was kept of it; empty when that
    /// is not known.
    fn job_response<'a>(&self, _memo: &'a [u8]) -> &'a [u8] {
        &[]
    }

    /// The start of what a payload asks for, for lists; `None` for a kind that has no request line.
    fn request_line(&self, _payload: &[u8]) -> Option<RequestLine> {
        None
    }

    /// What a payload asks for, as far as it may be shown: its secrets masked, and bounded in size.
    /// By default that is the payload itself, if it is JSON.
    fn request_view(&self, payload: &[u8]) -> RequestView {
        RequestView::of_payload(payload)
    }

    /// Reports operations that may start before the time that [`Verdict::Throttled`] said: what
    /// they waited for is over. Reports may be lost. By default there are none.
    fn early_starts(&self) -> Option<broadcast::Receiver<OperationId>> {
        None
    }

    /// Reads a callback about the job of a payload, in the service's own format; `None` when
    /// nothing says how to read it. By default nothing does.
    fn read_callback(&self, _payload: &[u8], _content: &[u8]) -> Option<CallbackMeaning> {
        None
    }

    /// Whether a call in flight is finished after a cancel: it submits a job, which can be canceled
    /// only once it is known. By default the call is abandoned.
    fn finishes_canceled_calls(&self) -> bool {
        false
    }

    /// Sends the call, at most once, and returns its outcome. Never retries and never follows a
    /// redirect.
    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a>;

    /// Asks how a job stands that an earlier [`Verdict::Accepted`] left with the upstream, and
    /// passes on a cancel; never sends it again. By default nothing is asked: a completion ends the
    /// job, and a cancel ends the operation.
    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        let _ = call;
        let verdict = match job.cancel_requested {
            true => Verdict::Canceled { may_have_happened: true },
            false => Verdict::Accepted { poll_after: None, timeout: Duration::ZERO },
        };
        Box::pin(std::future::ready(Outcome::unanswered(verdict)))
    }
}
