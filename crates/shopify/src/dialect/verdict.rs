//! Decides what a response of Shopify means for the operation. A 200 may contain a refusal or a
//! server error.

use std::sync::Arc;
use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use tidegate_core::operation::MICRO;
use tidegate_core::{AttemptEnd, Fault, FaultClass, Verdict, VerdictClass};
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};

use crate::delay::{TooManyRequests, from_429};
use crate::response_meta::{
    GraphqlError, GraphqlErrorCode, GraphqlOutcome, INTERNAL_ERROR, ResponseMeta, UNREADABLE,
};

/// How long to wait for the first request with the same key.
const STILL_RUNNING: Duration = Duration::from_secs(1);

/// A call and its response.
pub(super) struct AnsweredCall<'a> {
    pub asked: &'a RequestSummary<'a>,
    pub answer: &'a UpstreamResponse,
    pub body: &'a [u8],
    pub meta: &'a ResponseMeta,
}

impl AnsweredCall<'_> {
    fn fault(&self, class: FaultClass, what: &str) -> Fault {
        Fault::new(class, format!("{} was answered {} {what}.", self.asked, self.answer.status))
    }

    /// Returns the verdict for a 429: closes the budget it is about, for as long as its header or
    /// its body says.
    fn too_many_verdict(&self, limit: &Arc<str>) -> Verdict {
        let text =
            |name| self.answer.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let told = TooManyRequests { retry_after: text(RETRY_AFTER), date: text(DATE), body: self.body };
        let after = from_429(&told, self.answer.at);
        let what = match after {
            Some(wait) => format!("and asks to wait {wait} ms"),
            None => "and does not say how long to wait".to_owned(),
        };
        Verdict::Throttled {
            after: after.map(Duration::from_millis),
            scope: Some(Arc::clone(limit)),
            fault: self.fault(FaultClass::RateLimited, &what),
        }
    }

    /// Returns the verdict for a 200 that is no success: like that of an attempt with this end.
    fn failure_verdict(&self, end: AttemptEnd, what: &str) -> Verdict {
        let may_have_happened = self.asked.retry_rule.may_have_happened(end);
        let fault = Fault { may_have_happened, ..self.fault(FaultClass::Transient, what) };
        match self.asked.retry_rule.classify(end) {
            VerdictClass::Retry => Verdict::Retry { after: None, fault },
            _ => Verdict::Unknown(fault),
        }
    }

    /// Returns the verdict for a 430, which is no limit: Shopify took the call for an attack.
    fn security_rejection(&self) -> Option<Verdict> {
        let message = format!("{} was answered 430: Shopify takes it for an attack.", self.asked);
        let fault = Fault::new(FaultClass::Forbidden, message);
        (self.answer.status.as_u16() == 430).then_some(Verdict::Rejected(fault))
    }
}

/// Returns the verdict for a response to a REST call.
pub(super) fn rest_verdict(call: &AnsweredCall<'_>, limit: &Arc<str>, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Throttled { .. } => call.too_many_verdict(limit),
        verdict => call.security_rejection().unwrap_or(verdict),
    }
}

/// Returns the verdict for a response to a GraphQL call.
pub(super) fn graphql_verdict(call: &AnsweredCall<'_>, limit: &Arc<str>, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Throttled { .. } => call.too_many_verdict(limit),
        Verdict::Done if matches!(call.answer.content, Content::Whole(_)) => ok_verdict(call, limit),
        verdict => call.security_rejection().unwrap_or(verdict),
    }
}

/// Returns the verdict for a 200, which is a success only if nothing in it says otherwise. Errors
/// next to data leave what worked as it is: the caller finds both in the result.
fn ok_verdict(call: &AnsweredCall<'_>, limit: &Arc<str>) -> Verdict {
    match call.meta.graphql_outcome() {
        GraphqlOutcome::StillRunning => {
            let what = "with IDEMPOTENCY_CONCURRENT_REQUEST: a request with the same key is still running";
            let fault = call.fault(FaultClass::Conflict, what).in_doubt();
            Verdict::Retry { after: Some(STILL_RUNNING), fault }
        }
        GraphqlOutcome::Done => Verdict::Done,
        GraphqlOutcome::Throttled => throttled_verdict(call, limit),
        GraphqlOutcome::Broken => call.failure_verdict(INTERNAL_ERROR, "with INTERNAL_SERVER_ERROR"),
        GraphqlOutcome::Unreadable => {
            call.failure_verdict(UNREADABLE, "with neither data nor errors that can be read")
        }
        GraphqlOutcome::TooCostly { cost, most } => {
            let (cost, most) = (whole_points(cost), most / MICRO);
            let what = format!(
                "with THROTTLED: it asks for {cost} points and the budget never holds more than {most}; split it"
            );
            Verdict::Rejected(call.fault(FaultClass::Validation, &what))
        }
        GraphqlOutcome::Refused(error) => Verdict::Rejected(refusal_fault(call, error)),
    }
}

fn throttled_verdict(call: &AnsweredCall<'_>, limit: &Arc<str>) -> Verdict {
    let cost = &call.meta.cost;
    let after = cost.delay_ms();
    let what = match (after, cost.requested, cost.available) {
        (Some(wait), Some(requested), Some(available)) => format!(
            "with THROTTLED: it asks for {} points, {} are available, the rest in {wait} ms",
            whole_points(requested),
            available / MICRO
        ),
        _ => "with THROTTLED".to_owned(),
    };
    Verdict::Throttled {
        after: after.map(Duration::from_millis),
        scope: Some(Arc::clone(limit)),
        fault: call.fault(FaultClass::RateLimited, &what),
    }
}

fn refusal_fault(call: &AnsweredCall<'_>, error: &GraphqlError) -> Fault {
    let class = match error.code {
        GraphqlErrorCode::AccessDenied | GraphqlErrorCode::ShopInactive => FaultClass::Forbidden,
        _ => FaultClass::Validation,
    };
    let what = match (&error.code, error.cost, error.max_cost) {
        (GraphqlErrorCode::MaxCostExceeded, Some(cost), Some(most)) => format!(
            "with MAX_COST_EXCEEDED: it asks for {} points and one query may ask for {}; split it",
            whole_points(cost),
            whole_points(most)
        ),
        (GraphqlErrorCode::Missing, ..) => "with an error and no data".to_owned(),
        (code, ..) => format!("with {} and no data", code.as_str()),
    };
    call.fault(class, &what)
}

/// Converts to whole points, rounded up.
const fn whole_points(micro: u64) -> u64 {
    micro.div_ceil(MICRO)
}
