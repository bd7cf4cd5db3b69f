//! The executor of deployment steps: sends the request unchanged over the upstream's own path. A
//! step that creates something is never sent twice: when it may have happened, it ends as a
//! conflict, and a new plan looks for the object by its key. A step whose deployment was
//! interrupted is not sent at all: it belongs to a plan that is no longer followed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Fault, FaultClass, Hint, OnUnknown, Verdict};
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Method, Outcome, Upstream};

use super::active;
use super::payload::Payload;

/// The operation kinds it executes. A kind says what an operation is for; all are executed alike.
pub const KINDS: [&str; 10] = [
    "RoleEnsure",
    "ChannelEnsure",
    "OverwritesReplace",
    "MessageEnsure",
    "RolesMove",
    "ChannelsMove",
    "RoleRemove",
    "ChannelRemove",
    "MessageRemove",
    READ,
];
/// The kind that only reads.
pub const READ: &str = "Read";

/// Executes steps over an upstream of plain requests.
pub struct StepExecutor {
    http: Arc<dyn Upstream>,
}

impl StepExecutor {
    /// Creates an executor over `http`, the upstream that reaches Discord.
    #[must_use]
    pub fn new(http: Arc<dyn Upstream>) -> Self {
        Self { http }
    }

    /// Returns the same executor for every kind, to be registered with the engine.
    pub fn executors(http: Arc<dyn Upstream>) -> impl Iterator<Item = (Arc<str>, Arc<dyn Upstream>)> {
        let steps: Arc<dyn Upstream> = Arc::new(Self::new(http));
        KINDS.into_iter().map(move |kind| (Arc::from(kind), Arc::clone(&steps)))
    }

    async fn attempt(&self, call: Call<'_>) -> Outcome {
        let read = Payload::decode(call.payload).and_then(|payload| Ok((payload.inner()?, payload)));
        let (inner, payload) = match read {
            Ok(read) => read,
            Err(refusal) => {
                let fault = Fault::new(FaultClass::Validation, format!("It was not sent: {refusal}"));
                return Outcome::unanswered(Verdict::Rejected(fault));
            }
        };
        let makes = payload.request.method == Method::Post;
        let verdict = match &payload.deployment {
            _ if call.reconcile_first && makes => Some(possibly_created()),
            Some(deployment) if !active::is_active(deployment) => Some(interrupted()),
            _ => None,
        };
        if let Some(verdict) = verdict {
            return Outcome { hints: self.refund_hints(&inner), ..Outcome::unanswered(verdict) };
        }
        let mut outcome = self.http.carry(Call { payload: &inner, reconcile_first: false, ..call }).await;
        // A response that reports a server error does not prove that nothing was created.
        if makes
            && let Verdict::Retry { fault, .. } = &outcome.verdict
            && outcome.status.is_some()
        {
            outcome.verdict = Verdict::Unknown(fault.clone());
        }
        outcome
    }

    /// Returns hints that refund what was taken for a request that was never sent.
    fn refund_hints(&self, inner: &[u8]) -> Vec<Hint> {
        let charges =
            self.http.check(inner, &BTreeMap::new()).map(|checked| checked.charges).unwrap_or_default();
        let unspent = |limit| Hint { limit, spent: Some(0), ..Hint::default() };
        charges.into_iter().map(|charge| unspent(charge.limit)).collect()
    }
}

fn possibly_created() -> Verdict {
    let message = "It may have been created: the request was sent, and no response arrived. The next plan looks for it by its key.";
    Verdict::Rejected(Fault::new(FaultClass::Conflict, message))
}

fn interrupted() -> Verdict {
    let message = "Its deployment was interrupted before it was sent. The next plan decides again.";
    Verdict::Rejected(Fault::new(FaultClass::Conflict, message))
}

impl Upstream for StepExecutor {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let payload = Payload::decode(payload)?;
        let checked = self.http.check(&payload.inner()?, cost)?;
        let makes = payload.request.method == Method::Post;
        let on_unknown = if makes { OnUnknown::Reconcile } else { OnUnknown::Repeat };
        Ok(CallRequirements { on_unknown, can_reconcile: true, ..checked })
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.attempt(call))
    }
}

impl std::fmt::Debug for StepExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Steps")
    }
}
