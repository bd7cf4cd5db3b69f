//! The executor of deployment steps: sends the request unchanged over the upstream's own path. A
//! step that creates something is not sent again when it may have happened: it ends as a conflict,
//! and a new plan looks for the object by its key. A step whose deployment was interrupted is not
//! sent at all: it belongs to a plan that is no longer followed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Fault, FaultClass, Hint, OnUnknown, Verdict};
use tidegate_upstream::{
    Call, CallFuture, CallRequirements, FieldRefusal, Method, Outcome, RequestLine, RequestView, Upstream,
};

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
            return Outcome::unanswered(verdict).with_hints(self.refund_hints(&inner));
        }
        let mut outcome = self.http.carry(call.with_payload(&inner).with_reconcile_first(false)).await;
        // Stricter than the rule of failed calls: a plan can look whether the object exists, which
        // costs one read, and a gateway's 503 does not prove that nothing was created.
        if makes
            && let Verdict::Retry { fault, .. } = &outcome.verdict
            && outcome.status.is_some()
        {
            outcome.verdict = Verdict::Unknown(fault.clone());
        }
        name_route(&mut outcome.verdict, &payload);
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

/// Names the route in a message that names the upstream: to the people who read it, the upstream of
/// a deployer is a hash.
fn name_route(verdict: &mut Verdict, payload: &Payload) {
    let (Verdict::Throttled { fault, .. }
    | Verdict::Retry { fault, .. }
    | Verdict::Rejected(fault)
    | Verdict::Unknown(fault)) = verdict
    else {
        return;
    };
    let (method, path) = (payload.request.method, payload.request.path.as_str());
    let path = path.split('?').next().unwrap_or_default();
    if let Some(rest) = fault.message.strip_prefix(&format!("{method} to {}", payload.upstream)) {
        let message = format!("{method} {path}{rest}");
        *fault = fault.clone().with_message(message);
    }
}

fn possibly_created() -> Verdict {
    let message = "It may have been created; the next plan looks for it by its key.";
    Verdict::Rejected(Fault::new(FaultClass::Conflict, message).in_doubt())
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
        Ok(checked.with_on_unknown(on_unknown).with_can_reconcile(true))
    }

    fn request_line(&self, payload: &[u8]) -> Option<RequestLine> {
        self.http.request_line(&Payload::decode(payload).ok()?.inner().ok()?)
    }

    fn request_view(&self, payload: &[u8]) -> RequestView {
        match Payload::decode(payload).and_then(|payload| payload.inner()) {
            Ok(inner) => self.http.request_view(&inner),
            Err(_) => RequestView::of_payload(payload),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Time;
    use tidegate_upstream::HttpRequest;

    /// An upstream that retries whatever it was answered.
    struct RetryingUpstream(Option<u16>);

    impl Upstream for RetryingUpstream {
        fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
            Ok(CallRequirements::default())
        }

        fn carry<'a>(&'a self, _: Call<'a>) -> CallFuture<'a> {
            let fault = Fault::new(FaultClass::Transient, "it failed");
            let failed = Outcome::unanswered(Verdict::Retry { after: None, fault });
            Box::pin(async move { failed.with_status(self.0) })
        }
    }

    async fn verdict(method: Method, status: Option<u16>) -> Verdict {
        let request = HttpRequest::new(method, "/guilds/1/roles");
        let payload = Payload { deployment: None, upstream: "discord".into(), request }.encode().unwrap();
        let call = Call::new("op-1", &payload, Time::ZERO).with_on_unknown(OnUnknown::Reconcile);
        StepExecutor::new(Arc::new(RetryingUpstream(status))).carry(call).await.verdict
    }

    /// OPS-23: what may have been created is looked for, even if the upstream is configured to
    /// retry after server errors. What was not sent is sent again.
    #[tokio::test]
    async fn ops_23_a_create_that_may_have_happened_is_looked_for() {
        for status in [408, 500, 502, 503, 504, 520, 599] {
            assert!(matches!(verdict(Method::Post, Some(status)).await, Verdict::Unknown(_)), "{status}");
            assert!(matches!(verdict(Method::Patch, Some(status)).await, Verdict::Retry { .. }), "{status}");
        }
        assert!(matches!(verdict(Method::Post, None).await, Verdict::Retry { .. }));
    }
}
