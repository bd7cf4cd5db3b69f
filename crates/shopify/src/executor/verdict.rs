//! Decides what the end of a bulk operation, or a failure on the way, means for the queue: an
//! operation that did not start is retried or waits, one that may have started is looked for, and
//! one that ended has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use tidegate_core::{Fault, FaultClass, Verdict};
use tidegate_upstream::{FieldRefusal, Outcome};

use super::encode_result;
use crate::bulk::{BulkOperation, BulkStatus, ResultUrl};
use crate::client::error::{Error, ShopifyErrorKind};

/// How long to wait when Shopify already runs the maximum: another owner's operations, whose end is
/// not reported to us.
const BUSY: Duration = Duration::from_secs(10);
/// How long to wait before checking whether a missing upstream has come back.
const MISSING: Duration = Duration::from_secs(15);

/// The limits that a verdict may close.
pub(super) struct BulkLimits {
    pub(super) points: Arc<str>,
    pub(super) bulk: Arc<str>,
}

/// The result as it is stored.
#[derive(Serialize)]
pub(super) struct StoredBulkResult<'a> {
    id: &'a str,
    status: &'a str,
    error_code: Option<&'a str>,
    object_count: u64,
    root_object_count: u64,
    file_size: Option<u64>,
    url: Option<&'a str>,
    partial_data_url: Option<&'a str>,
}

impl BulkLimits {
    /// Returns the verdict when it was not started, or when that is unknown.
    pub(super) fn start_failure_verdict(&self, error: &Error, look_first: bool) -> Verdict {
        let fault = |class| Fault::new(class, error.to_string());
        match error.kind() {
            ShopifyErrorKind::Throttled { wait } => {
                let scope = Some(Arc::clone(&self.points));
                Verdict::Throttled { after: Some(*wait), scope, fault: fault(FaultClass::RateLimited) }
            }
            ShopifyErrorKind::Busy { .. } => {
                let scope = Some(Arc::clone(&self.bulk));
                Verdict::Throttled { after: Some(BUSY), scope, fault: fault(FaultClass::RateLimited) }
            }
            ShopifyErrorKind::Unknown(_) => Verdict::Unknown(fault(FaultClass::Transient)),
            ShopifyErrorKind::Ambiguous(_) => Verdict::Rejected(fault(FaultClass::Conflict)),
            // Until it was looked for, an earlier attempt may have taken effect.
            kind if look_first && !is_final(kind) => Verdict::Unknown(fault(FaultClass::Transient)),
            ShopifyErrorKind::NotSent(_) | ShopifyErrorKind::Failed(_) | ShopifyErrorKind::Limiter => {
                Verdict::Retry { after: None, fault: fault(FaultClass::Transient) }
            }
            ShopifyErrorKind::Refused { status, .. } => {
                Verdict::Rejected(fault(FaultClass::of_status(*status).unwrap_or(FaultClass::Validation)))
            }
            ShopifyErrorKind::Graphql { codes, .. } if codes.iter().any(|code| code == "ACCESS_DENIED") => {
                Verdict::Rejected(fault(FaultClass::Forbidden))
            }
            _ => Verdict::Rejected(fault(FaultClass::Validation)),
        }
    }

    /// Returns the verdict when others hold the shop's lease. Nothing was started.
    pub(super) fn lease_busy_verdict(&self, lease: &str, pause: Duration) -> Verdict {
        let message = format!("Another program's bulk operation holds the lease {lease}: it waits.");
        let fault = Fault::new(FaultClass::RateLimited, message);
        Verdict::Throttled { after: Some(pause), scope: Some(Arc::clone(&self.bulk)), fault }
    }

    /// Returns the verdict of a poll that did not find the operation. Only Shopify's word that it
    /// is gone ends it.
    pub(super) fn poll_failure_verdict(&self, error: &Error, every: Duration) -> Verdict {
        let fault = |class| Fault::new(class, format!("Its end was not observed. {error}"));
        match error.kind() {
            ShopifyErrorKind::Gone(_) => Verdict::Rejected(fault(FaultClass::NotFound)),
            ShopifyErrorKind::Throttled { wait } => {
                let scope = Some(Arc::clone(&self.points));
                Verdict::Throttled { after: Some(*wait), scope, fault: fault(FaultClass::RateLimited) }
            }
            _ => Verdict::PollFailed { every, fault: fault(FaultClass::Transient) },
        }
    }
}

/// Returns the outcome of an operation that has ended.
pub(super) fn end_outcome(operation: &BulkOperation, cancel_requested: bool) -> Outcome {
    let verdict = match operation.status {
        BulkStatus::Completed => Verdict::Done,
        BulkStatus::Canceled if cancel_requested => Verdict::Canceled { may_have_happened: true },
        _ => {
            let (id, status) = (&operation.id, operation.status.as_str());
            let code = operation.error_code.as_deref().unwrap_or("no code");
            let message = format!("The bulk operation {id} ended as {status} ({code}).");
            Verdict::Rejected(Fault::new(fault_class(operation), message))
        }
    };
    let body = encode_result(&StoredBulkResult {
        id: &operation.id,
        status: operation.status.as_str(),
        error_code: operation.error_code.as_deref(),
        object_count: operation.objects,
        root_object_count: operation.root_objects,
        file_size: operation.file_size,
        url: operation.url.as_ref().map(ResultUrl::as_str),
        partial_data_url: operation.partial.as_ref().map(ResultUrl::as_str),
    });
    Outcome::unanswered(verdict).with_body(body)
}

/// Returns Shopify's refusal, in its own words, as the result.
pub(super) fn refusal_body(kind: &ShopifyErrorKind) -> Bytes {
    match kind {
        ShopifyErrorKind::UserErrors { errors, .. } => encode_result(&json!({ "user_errors": errors })),
        ShopifyErrorKind::Graphql { errors, .. } => encode_result(&json!({ "errors": errors })),
        ShopifyErrorKind::Refused { status, body } => {
            encode_result(&json!({ "status": status, "body": body }))
        }
        _ => Bytes::new(),
    }
}

/// Returns whether Shopify has refused to start it, which comes after the look.
const fn is_final(kind: &ShopifyErrorKind) -> bool {
    matches!(kind, ShopifyErrorKind::UserErrors { .. })
}

/// Returns the verdict for an unreadable payload. An upstream that is gone from the configuration
/// may be a mistake: what was accepted for it waits.
pub(super) fn unreadable_verdict(refusal: &FieldRefusal, look_first: bool) -> Verdict {
    let fault = Fault::new(FaultClass::Validation, format!("It was not started: {refusal}"));
    match refusal.field.as_str() {
        "upstream" => Verdict::Throttled { after: Some(MISSING), scope: None, fault },
        _ if look_first => Verdict::Unknown(fault),
        _ => Verdict::Rejected(fault),
    }
}

/// Returns the verdict of a poll whose payload cannot be read: the configuration has changed, and
/// may change back.
pub(super) fn poll_refusal_verdict(refusal: &FieldRefusal) -> Verdict {
    let fault = Fault::new(FaultClass::Transient, format!("It cannot be polled: {refusal}"));
    Verdict::PollFailed { every: MISSING, fault }
}

fn fault_class(operation: &BulkOperation) -> FaultClass {
    match (&operation.status, operation.error_code.as_deref()) {
        (_, Some("ACCESS_DENIED")) => FaultClass::Forbidden,
        (BulkStatus::Canceled, _) => FaultClass::Conflict,
        _ => FaultClass::Transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes() -> BulkLimits {
        BulkLimits { points: "acme/points".into(), bulk: "acme/bulk".into() }
    }

    /// LIM-16: an operation that Shopify has no slot for waits without using an attempt, on the
    /// bulk limit alone.
    #[test]
    fn lim_16_busy_waits_on_the_bulk_limit() {
        let busy = Error::from(ShopifyErrorKind::Busy { running: Vec::new() });
        for look_first in [true, false] {
            let verdict = scopes().start_failure_verdict(&busy, look_first);
            assert!(
                matches!(&verdict, Verdict::Throttled { scope: Some(scope), .. } if &**scope == "acme/bulk"),
                "{verdict:?}"
            );
        }
    }

    /// LIM-29: until the look succeeds, nothing leads to a start without one.
    #[test]
    fn lim_29_a_look_that_failed_is_made_again() {
        let kinds = || {
            let refused = ShopifyErrorKind::Refused { status: 401, body: Box::default() };
            [
                ShopifyErrorKind::NotSent("x".into()),
                ShopifyErrorKind::Failed("x".into()),
                ShopifyErrorKind::Unreadable("x".into()),
                refused,
            ]
        };
        for kind in kinds() {
            let verdict = scopes().start_failure_verdict(&kind.into(), true);
            assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
        }
        let [sent, ..] = kinds();
        assert!(matches!(scopes().start_failure_verdict(&sent.into(), false), Verdict::Retry { .. }));
    }

    #[test]
    fn an_end_is_kept_with_where_its_result_is() {
        let bulk = |status: &BulkStatus| BulkOperation::new("gid://shopify/BulkOperation/7", status);
        let mut operation = bulk(&BulkStatus::Completed);
        operation.url = Some(ResultUrl::new("https://x/r.jsonl"));
        for cancel_requested in [false, true] {
            let outcome = end_outcome(&operation, cancel_requested);
            let kept: serde_json::Value = serde_json::from_slice(&outcome.body).unwrap();
            assert_eq!((outcome.verdict, &kept["url"]), (Verdict::Done, &"https://x/r.jsonl".into()));
            let failed = end_outcome(&bulk(&BulkStatus::Failed), cancel_requested);
            assert!(matches!(failed.verdict, Verdict::Rejected(_)) && !failed.body.is_empty());
        }
        let canceled = |requested| end_outcome(&bulk(&BulkStatus::Canceled), requested).verdict;
        assert!(matches!(canceled(false), Verdict::Rejected(_)), "someone else canceled it");
        assert_eq!(canceled(true), Verdict::Canceled { may_have_happened: true });
    }

    /// LIM-29: a poll that fails says nothing about the operation; one that finds none ends it.
    #[test]
    fn lim_29_only_shopify_ends_what_runs() {
        let polled = |kind: ShopifyErrorKind| scopes().poll_failure_verdict(&kind.into(), MISSING);
        let refused = ShopifyErrorKind::Refused { status: 401, body: Box::default() };
        for kind in [ShopifyErrorKind::Failed("x".into()), ShopifyErrorKind::Unknown("x".into()), refused] {
            assert!(matches!(polled(kind), Verdict::PollFailed { every: MISSING, .. }));
        }
        let throttled = polled(ShopifyErrorKind::Throttled { wait: BUSY });
        assert!(
            matches!(&throttled, Verdict::Throttled { scope: Some(scope), .. } if &**scope == "acme/points"),
            "{throttled:?}"
        );
        assert!(matches!(polled(ShopifyErrorKind::Gone("x".into())), Verdict::Rejected(_)));
    }
}
