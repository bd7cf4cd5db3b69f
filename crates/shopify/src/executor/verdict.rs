//! What the end of a bulk operation, or a failure on the way, means for the queue: what did not start is retried or waits,
//! what may have started is looked for, and what ended has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use tidegate_core::{Fault, FaultClass, Hint, Verdict};
use tidegate_upstream::{Outcome, Refusal};

use super::kept;
use crate::bulk::{Operation, ResultUrl, Status};
use crate::client::error::{Error, Kind, Result};

/// How long to wait when Shopify runs as many as it may: somebody else's, whose end nobody tells us.
const BUSY: Duration = Duration::from_secs(10);
/// How long to wait when all workers that bulk operations may hold are held.
const FULL: Duration = Duration::from_secs(5);
/// How long to wait before looking whether an upstream that is missing has come back.
const MISSING: Duration = Duration::from_secs(15);

/// The limits that a verdict may close.
pub(super) struct Scopes {
    pub(super) points: Arc<str>,
    pub(super) bulk: Arc<str>,
}

/// The result that is kept.
#[derive(Serialize)]
pub(super) struct Kept<'a> {
    id: &'a str,
    status: &'a str,
    error_code: Option<&'a str>,
    object_count: u64,
    root_object_count: u64,
    file_size: Option<u64>,
    url: Option<&'a str>,
    partial_data_url: Option<&'a str>,
}

impl Scopes {
    /// What an end means, or that it was not seen.
    pub(super) fn ended(&self, ended: Result<Operation>) -> Outcome {
        let operation = match ended {
            Ok(operation) => operation,
            Err(error) => {
                let message = format!("Its end was not seen. {error}");
                let verdict = match error.kind() {
                    Kind::Gone(_) => Verdict::Rejected(Fault::new(FaultClass::NotFound, message)),
                    _ => Verdict::Unknown(Fault::new(FaultClass::Transient, message)),
                };
                return Outcome::unanswered(verdict);
            }
        };
        let verdict = if operation.status == Status::Completed {
            Verdict::Done
        } else {
            let (id, status) = (&operation.id, operation.status.as_str());
            let code = operation.error_code.as_deref().unwrap_or("no code");
            let message = format!("The bulk operation {id} ended as {status} ({code}).");
            Verdict::Rejected(Fault::new(class(&operation), message))
        };
        let body = kept(&Kept {
            id: &operation.id,
            status: operation.status.as_str(),
            error_code: operation.error_code.as_deref(),
            object_count: operation.objects,
            root_object_count: operation.root_objects,
            file_size: operation.file_size,
            url: operation.url.as_ref().map(ResultUrl::as_str),
            partial_data_url: operation.partial.as_ref().map(ResultUrl::as_str),
        });
        Outcome { body, ..Outcome::unanswered(verdict) }
    }

    /// What it means that as many are under way as may hold a worker. Nothing was sent.
    pub(super) fn full(&self, places: usize) -> Outcome {
        let message =
            format!("{places} bulk operations hold a worker here, which is as many as may: it waits.");
        let fault = Fault::new(FaultClass::RateLimited, message);
        let verdict = Verdict::Throttled { after: Some(FULL), scope: Some(Arc::clone(&self.bulk)), fault };
        let hint = Hint { limit: Arc::clone(&self.points), spent: Some(0), ..Hint::default() };
        Outcome { hints: vec![hint], ..Outcome::unanswered(verdict) }
    }

    /// What it means that it was not started, or that it is not known whether it was.
    pub(super) fn not_begun(&self, error: &Error, look_first: bool) -> Verdict {
        let fault = |class| Fault::new(class, error.to_string());
        match error.kind() {
            Kind::Throttled { wait } => {
                let scope = Some(Arc::clone(&self.points));
                Verdict::Throttled { after: Some(*wait), scope, fault: fault(FaultClass::RateLimited) }
            }
            Kind::Busy { .. } => {
                let scope = Some(Arc::clone(&self.bulk));
                Verdict::Throttled { after: Some(BUSY), scope, fault: fault(FaultClass::RateLimited) }
            }
            Kind::Unknown(_) => Verdict::Unknown(fault(FaultClass::Transient)),
            Kind::Ambiguous(_) => Verdict::Rejected(fault(FaultClass::Conflict)),
            // Until it was looked, an earlier attempt may have happened.
            kind if look_first && !is_final(kind) => Verdict::Unknown(fault(FaultClass::Transient)),
            Kind::NotSent(_) | Kind::Failed(_) | Kind::Limiter => {
                Verdict::Retry { after: None, fault: fault(FaultClass::Transient) }
            }
            Kind::Refused { status, .. } => {
                Verdict::Rejected(fault(FaultClass::of_status(*status).unwrap_or(FaultClass::Validation)))
            }
            Kind::Graphql { codes, .. } if codes.iter().any(|code| code == "ACCESS_DENIED") => {
                Verdict::Rejected(fault(FaultClass::Forbidden))
            }
            _ => Verdict::Rejected(fault(FaultClass::Validation)),
        }
    }
}

/// What Shopify said against it, in its own words, as the result.
pub(super) fn refusal(kind: &Kind) -> Bytes {
    match kind {
        Kind::UserErrors { errors, .. } => kept(&json!({ "user_errors": errors })),
        Kind::Graphql { errors, .. } => kept(&json!({ "errors": errors })),
        Kind::Refused { status, body } => kept(&json!({ "status": status, "body": body })),
        _ => Bytes::new(),
    }
}

/// Whether Shopify has said no to starting it, which comes after the look.
const fn is_final(kind: &Kind) -> bool {
    matches!(kind, Kind::UserErrors { .. })
}

/// An upstream that is gone from the configuration may be a slip of the pen: what was accepted for it waits.
pub(super) fn unreadable(refusal: &Refusal, look_first: bool) -> Verdict {
    let fault = Fault::new(FaultClass::Validation, format!("It was not started: {refusal}"));
    match refusal.field.as_str() {
        "upstream" => Verdict::Throttled { after: Some(MISSING), scope: None, fault },
        _ if look_first => Verdict::Unknown(fault),
        _ => Verdict::Rejected(fault),
    }
}

fn class(operation: &Operation) -> FaultClass {
    match (&operation.status, operation.error_code.as_deref()) {
        (_, Some("ACCESS_DENIED")) => FaultClass::Forbidden,
        (Status::Canceled, _) => FaultClass::Conflict,
        _ => FaultClass::Transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes() -> Scopes {
        Scopes { points: "acme/points".into(), bulk: "acme/bulk".into() }
    }

    /// LIM-16: what Shopify has no place for waits without an attempt, on the bulk limit alone.
    #[test]
    fn lim_16_busy_waits_on_the_bulk_limit() {
        let busy = Error::from(Kind::Busy { running: Vec::new() });
        for look_first in [true, false] {
            let verdict = scopes().not_begun(&busy, look_first);
            assert!(
                matches!(&verdict, Verdict::Throttled { scope: Some(scope), .. } if &**scope == "acme/bulk"),
                "{verdict:?}"
            );
        }
    }

    /// LIM-29: while it was not looked, nothing leads to a start without a look.
    #[test]
    fn lim_29_a_look_that_failed_is_made_again() {
        let kinds = || {
            let refused = Kind::Refused { status: 401, body: Box::default() };
            [Kind::NotSent("x".into()), Kind::Failed("x".into()), Kind::Unreadable("x".into()), refused]
        };
        for kind in kinds() {
            let verdict = scopes().not_begun(&kind.into(), true);
            assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
        }
        let [sent, ..] = kinds();
        assert!(matches!(scopes().not_begun(&sent.into(), false), Verdict::Retry { .. }));
    }

    #[test]
    fn an_end_is_kept_with_where_its_result_is() {
        let mut operation = Operation::new("gid://shopify/BulkOperation/7", &Status::Completed);
        operation.url = Some(ResultUrl::new("https://x/r.jsonl"));
        let outcome = scopes().ended(Ok(operation));
        let kept: serde_json::Value = serde_json::from_slice(&outcome.body).unwrap();
        assert_eq!((outcome.verdict, &kept["url"]), (Verdict::Done, &"https://x/r.jsonl".into()));
        let failed = scopes().ended(Ok(Operation::new("gid://shopify/BulkOperation/7", &Status::Failed)));
        assert!(matches!(failed.verdict, Verdict::Rejected(_)) && !failed.body.is_empty());
        let unseen = scopes().ended(Err(Kind::Failed("x".into()).into()));
        assert!(matches!(unseen.verdict, Verdict::Unknown(_)));
    }
}
