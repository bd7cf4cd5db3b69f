//! Who carries the steps of deployments: the request as it is, over the upstream's own way. What makes something new is
//! never sent twice: when it may have happened it ends as a conflict, and a new plan looks for it by its key.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Fault, FaultClass, Hint, OnUnknown, Verdict};
use tidegate_upstream::{Call, Carrying, Checked, Envelope, Method, Outcome, Refusal, Upstream};

/// The kinds of operations that it carries. An operation's kind says what it is for; all are carried alike.
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
/// The kind that only looks.
pub const READ: &str = "Read";

/// Carries steps over an upstream of plain requests.
pub struct Steps {
    http: Arc<dyn Upstream>,
}

impl Steps {
    /// Over `http`, which speaks with Discord.
    #[must_use]
    pub fn new(http: Arc<dyn Upstream>) -> Self {
        Self { http }
    }

    /// The same for every kind, to be registered with the engine.
    pub fn executors(http: Arc<dyn Upstream>) -> impl Iterator<Item = (Arc<str>, Arc<dyn Upstream>)> {
        let steps: Arc<dyn Upstream> = Arc::new(Self::new(http));
        KINDS.into_iter().map(move |kind| (Arc::from(kind), Arc::clone(&steps)))
    }

    async fn attempt(&self, call: Call<'_>) -> Outcome {
        let makes = makes_something(call.payload).unwrap_or(true);
        if call.look_first && makes {
            return Outcome { hints: self.given_back(call.payload), ..Outcome::unanswered(may_be_there()) };
        }
        let mut outcome = self.http.carry(Call { look_first: false, ..call }).await;
        // An answer that tells of trouble over there does not tell that nothing was made.
        if makes
            && let Verdict::Retry { fault, .. } = &outcome.verdict
            && outcome.status.is_some()
        {
            outcome.verdict = Verdict::Unknown(fault.clone());
        }
        outcome
    }

    /// Nothing was sent: what was taken for it is given back.
    fn given_back(&self, payload: &[u8]) -> Vec<Hint> {
        let charges =
            self.http.check(payload, &BTreeMap::new()).map(|checked| checked.charges).unwrap_or_default();
        charges
            .into_iter()
            .map(|charge| Hint { limit: charge.limit, spent: Some(0), ..Hint::default() })
            .collect()
    }
}

fn makes_something(payload: &[u8]) -> Result<bool, Refusal> {
    Ok(Envelope::decode(payload)?.request.method == Method::Post)
}

fn may_be_there() -> Verdict {
    let message =
        "It may have been made: the request left, and no answer came. The next plan looks for it by its key.";
    Verdict::Rejected(Fault::new(FaultClass::Conflict, message))
}

impl Upstream for Steps {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<Checked, Refusal> {
        let checked = self.http.check(payload, cost)?;
        let on_unknown = if makes_something(payload)? { OnUnknown::Reconcile } else { OnUnknown::Repeat };
        Ok(Checked { on_unknown, can_reconcile: true, ..checked })
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> Carrying<'a> {
        Box::pin(self.attempt(call))
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Steps")
    }
}
