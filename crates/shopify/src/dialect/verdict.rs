//! What an answer of Shopify means for the operation. A 200 may hold a refusal, and a failure may have happened all the
//! same; what only reads is never in doubt.

use std::sync::Arc;
use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use tidegate_core::operation::MICRO;
use tidegate_core::{Fault, FaultClass, Verdict};
use tidegate_upstream::http::answer::{Answer, Asked, Content};

use crate::delay::{TooMany, from_429};
use crate::said::{Answered, Code, Said, SaidError};

/// How long the first sending of the same key is waited for.
const STILL_RUNNING: Duration = Duration::from_secs(1);

/// A call and its answer.
pub(super) struct Call<'a> {
    pub asked: &'a Asked<'a>,
    pub answer: &'a Answer,
    pub body: &'a [u8],
    pub said: &'a Said,
}

impl Call<'_> {
    fn fault(&self, class: FaultClass, what: &str) -> Fault {
        Fault::new(class, format!("{} was answered {} {what}.", self.asked, self.answer.status))
    }

    /// A 429: closes the budget it speaks of, for as long as it says in its header or its body.
    fn too_many(&self, limit: &Arc<str>) -> Verdict {
        let text =
            |name| self.answer.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let told = TooMany { retry_after: text(RETRY_AFTER), date: text(DATE), body: self.body };
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

    /// A failure on the way after which a change may have been made.
    fn in_doubt(&self, reads: bool, verdict: Verdict) -> Verdict {
        let doubtful = matches!(self.answer.status.as_u16(), 500 | 502 | 504);
        match verdict {
            Verdict::Retry { fault, .. } if doubtful && !reads => Verdict::Unknown(fault),
            verdict => verdict,
        }
    }

    /// 430 is no limit: Shopify took the call for an attack.
    fn security(&self) -> Option<Verdict> {
        let message = format!("{} was answered 430: Shopify takes it for an attack.", self.asked);
        let fault = Fault::new(FaultClass::Forbidden, message);
        (self.answer.status.as_u16() == 430).then_some(Verdict::Rejected(fault))
    }
}

/// What the answer to a REST call means.
pub(super) fn of_rest(call: &Call<'_>, limit: &Arc<str>, reads: bool, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Throttled { .. } => call.too_many(limit),
        verdict => call.security().unwrap_or_else(|| call.in_doubt(reads, verdict)),
    }
}

/// What the answer to a GraphQL call means.
pub(super) fn of_graphql(call: &Call<'_>, limit: &Arc<str>, reads: bool, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Throttled { .. } => call.too_many(limit),
        Verdict::Done if matches!(call.answer.content, Content::Whole(_)) => in_200(call, limit, reads),
        verdict => call.security().unwrap_or_else(|| call.in_doubt(reads, verdict)),
    }
}

/// A 200 is a success only if nothing in it says otherwise. Errors beside data leave what worked as it is: the caller
/// finds both in the result.
fn in_200(call: &Call<'_>, limit: &Arc<str>, reads: bool) -> Verdict {
    match call.said.answered() {
        Answered::StillRunning => {
            let what = "with IDEMPOTENCY_CONCURRENT_REQUEST: the same key is still at work";
            Verdict::Retry { after: Some(STILL_RUNNING), fault: call.fault(FaultClass::Conflict, what) }
        }
        Answered::Done => Verdict::Done,
        Answered::Throttled => throttled(call, limit),
        Answered::Broken => failed(call.fault(FaultClass::Transient, "with INTERNAL_SERVER_ERROR"), reads),
        Answered::Unreadable => {
            failed(call.fault(FaultClass::Transient, "with neither data nor errors that can be read"), reads)
        }
        Answered::TooCostly { cost, most } => {
            let (cost, most) = (whole(cost), most / MICRO);
            let what = format!(
                "with THROTTLED: it asks for {cost} points and the budget never holds more than {most}; split it"
            );
            Verdict::Rejected(call.fault(FaultClass::Validation, &what))
        }
        Answered::Refused(error) => Verdict::Rejected(refused(call, error)),
    }
}

/// What is not known to have been done: what only reads is sent again.
fn failed(fault: Fault, reads: bool) -> Verdict {
    if reads { Verdict::Retry { after: None, fault } } else { Verdict::Unknown(fault) }
}

fn throttled(call: &Call<'_>, limit: &Arc<str>) -> Verdict {
    let cost = &call.said.cost;
    let after = cost.delay_ms();
    let what = match (after, cost.requested, cost.available) {
        (Some(wait), Some(requested), Some(available)) => format!(
            "with THROTTLED: it asks for {} points, {} are there, {wait} ms bring the rest",
            whole(requested),
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

fn refused(call: &Call<'_>, error: &SaidError) -> Fault {
    let class = match error.code {
        Code::AccessDenied | Code::ShopInactive => FaultClass::Forbidden,
        _ => FaultClass::Validation,
    };
    let what = match (&error.code, error.cost, error.max_cost) {
        (Code::MaxCostExceeded, Some(cost), Some(most)) => format!(
            "with MAX_COST_EXCEEDED: it asks for {} points and one query may ask for {}; split it",
            whole(cost),
            whole(most)
        ),
        (Code::Unsaid, ..) => "with an error and no data".to_owned(),
        (code, ..) => format!("with {} and no data", code.as_str()),
    };
    call.fault(class, &what)
}

/// Points, rounded up.
const fn whole(micro: u64) -> u64 {
    micro.div_ceil(MICRO)
}
