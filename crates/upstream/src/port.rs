//! The port that every dialect implements: check a payload before it is accepted, carry it once when it is taken.
//! No machinery: who decides when, how often and in which order is not here.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::fact::LimitShape;
use tidegate_core::{Charge, Hint, OnUnknown, Time, Verdict};

/// One attempt at a call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// What was accepted, as `check` saw it.
    pub payload: &'a [u8],
    /// Which attempt it is; the first is 1.
    pub attempt: u16,
    /// The last attempt's outcome is unknown: look before anything is sent again.
    pub reconcile_first: bool,
    /// When the attempt starts.
    pub now: Time,
    /// No answer is waited for after this time.
    pub deadline: Option<Time>,
    /// The operation's id; sent along where the upstream can take it.
    pub operation: &'a str,
}

impl fmt::Debug for Call<'_> {
    /// Everything but the payload, which may hold what is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("operation", &self.operation)
            .field("attempt", &self.attempt)
            .field("look_first", &self.reconcile_first)
            .field("now", &self.now)
            .field("deadline", &self.deadline)
            .field("payload_len", &self.payload.len())
            .finish()
    }
}

/// What became of one attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What it means for the operation.
    pub verdict: Verdict,
    /// What the answer said about limits.
    pub hints: Vec<Hint>,
    /// The result to be kept, encoded; empty when no answer came.
    pub body: Bytes,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What the call cost, where the dialect knows it; kept for analysis, and no limit goes by it. Of one call at most
    /// [`CHARGES_MAX`](tidegate_core::bounds::CHARGES_MAX) are kept.
    pub spending: Vec<CallCost>,
}

/// What one call cost of one limit, in micro-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCost {
    /// The limit, by its whole name.
    pub limit: Arc<str>,
    /// What calls of its like have in common, for people to read: a name, `#` and a short hash, as in
    /// `GetOrders#1f0c9a2b`. At most [`SHAPE_LEN_MAX`](tidegate_core::bounds::SHAPE_LEN_MAX) bytes; never a variable.
    pub shape: Arc<str>,
    /// What was taken before it was sent.
    pub requested: u64,
    /// What it really cost, where the answer says so.
    pub actual: Option<u64>,
}

impl Outcome {
    /// An outcome with nothing but a verdict: no answer came.
    #[must_use]
    pub const fn unanswered(verdict: Verdict) -> Self {
        Self { verdict, hints: Vec::new(), body: Bytes::new(), status: None, spending: Vec::new() }
    }
}

impl fmt::Debug for Outcome {
    /// Everything but the body.
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

/// What a payload that can be accepted asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRequirements {
    /// What must be granted before it is sent.
    pub charges: Vec<Charge>,
    /// Those of the charged limits that are made like this when there are none of these names.
    pub opens: Vec<(Arc<str>, LimitShape)>,
    /// What follows an unknown outcome, when the caller does not say.
    pub on_unknown: OnUnknown,
    /// Whether the dialect can look whether an earlier attempt took effect.
    pub can_reconcile: bool,
}

/// Why a payload cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRefusal {
    /// Which field, as callers spell it.
    pub field: String,
    /// What is wrong with it, as a sentence.
    pub message: String,
}

impl FieldRefusal {
    /// A refusal of `field`.
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldRefusal {}

/// A call under way. Dropping it ends the call; whether it took effect is then unknown.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A dialect: how calls of one kind are checked and carried.
pub trait Upstream: Send + Sync {
    /// What the payload asks for. `cost` is what the caller says it costs, in whole tokens by the limit's name.
    ///
    /// # Errors
    /// Names the field that cannot be accepted.
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal>;

    /// Sends it, at most once, and tells what became of it. Never repeats and never follows a redirect.
    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a>;
}
