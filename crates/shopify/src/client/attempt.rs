//! One attempt at a call, and whether its response allows a retry. It neither waits nor retries.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use serde_json::Value;
use tidegate_core::{AttemptEnd, OnUnknown, RetryRule, Time, VerdictClass};
use tidegate_store::Clock;
use tidegate_upstream::http::response::{Content, UpstreamResponse};
use tidegate_upstream::http::send::{NoResponse, Sender};
use tidegate_upstream::{Call, HttpRequest};

use super::error::ShopifyErrorKind;
use crate::delay::{TooManyRequests, from_429};
use crate::response_meta::{GraphqlErrorCode, GraphqlOutcome, INTERNAL_ERROR, ResponseMeta, UNREADABLE};

/// The most that one query may cost, on every plan, in points.
const QUERY_MAX: f64 = 1_000.0;

/// Sends requests to one shop.
pub(crate) struct ShopSender {
    pub(crate) sender: Sender,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The API of a call, which determines where its response reports what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiKind {
    Graphql,
    Rest,
}

/// The result of one attempt.
#[derive(Debug)]
pub(crate) struct AttemptResult {
    pub(crate) meta: ResponseMeta,
    pub(crate) outcome: AttemptOutcome,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptOutcome {
    /// It ran, with this response.
    Done { status: u16, headers: HeaderMap, body: Bytes },
    /// It did not run; it may after this time.
    Throttled { after: Option<Duration> },
    /// It was not sent.
    NotSent(String),
    /// It did not run, or may run twice: it may be sent again.
    Failed(String),
    /// It may have run, and must not run twice.
    Unknown(String),
    /// It did not run, and repeating is pointless.
    Refused(ShopifyErrorKind),
}

impl ShopSender {
    /// Sends the request once.
    pub(crate) async fn attempt(
        &self,
        request: HttpRequest,
        speech: ApiKind,
        on_unknown: OnUnknown,
        operation: &str,
    ) -> AttemptResult {
        let rule = self.sender.retry_rule(on_unknown);
        let call = Call::new(operation, b"", self.clock.now()).with_on_unknown(on_unknown);
        match self.sender.exchange(request, call).await {
            Ok(answer) => interpret(answer, speech, rule),
            Err(missed) => {
                AttemptResult { meta: ResponseMeta::default(), outcome: no_answer_outcome(missed, rule) }
            }
        }
    }
}

fn no_answer_outcome(NoResponse { end, fault }: NoResponse, rule: RetryRule) -> AttemptOutcome {
    match end {
        AttemptEnd::NotSent => AttemptOutcome::NotSent(fault.message),
        _ => failure_outcome(end, rule, fault.message),
    }
}

/// Returns the outcome of an attempt that failed with this end.
fn failure_outcome(end: AttemptEnd, rule: RetryRule, reason: String) -> AttemptOutcome {
    match rule.classify(end) {
        VerdictClass::Retry => AttemptOutcome::Failed(reason),
        _ => AttemptOutcome::Unknown(reason),
    }
}

/// Interprets a response.
pub(crate) fn interpret(answer: UpstreamResponse, speech: ApiKind, rule: RetryRule) -> AttemptResult {
    let UpstreamResponse { status, headers, content, at } = answer;
    let (body, cut) = match content {
        Content::Whole(body) => (body, None),
        Content::TooLarge { most } => {
            (Bytes::new(), Some(format!("its body is larger than the limit of {most} bytes")))
        }
        Content::Cut(reason) => (Bytes::new(), Some(reason)),
        Content::Relayed => (Bytes::new(), Some("its body went elsewhere".to_owned())),
    };
    let said = match speech {
        ApiKind::Graphql => ResponseMeta::from_graphql(&headers, &body),
        ApiKind::Rest => ResponseMeta::from_headers(&headers),
    };
    // Shopify says 429 or THROTTLED, and means nothing else by a 403.
    let (is_complete, asks_to_wait) = (cut.is_none(), false);
    let end = AttemptEnd::Answered { status: status.as_u16(), is_complete, asks_to_wait };
    let what = match rule.classify(end) {
        VerdictClass::Throttled => AttemptOutcome::Throttled { after: retry_after_429(&headers, &body, at) },
        VerdictClass::Done if speech == ApiKind::Graphql => {
            graphql_outcome(&said, status.as_u16(), headers, body, rule)
        }
        VerdictClass::Done => AttemptOutcome::Done { status: status.as_u16(), headers, body },
        VerdictClass::Rejected => AttemptOutcome::Refused(ShopifyErrorKind::Refused {
            status: status.as_u16(),
            body: Box::new(json(&body)),
        }),
        VerdictClass::Retry | VerdictClass::Unknown => {
            let reason = match cut.filter(|_| status.is_success()) {
                Some(reason) => format!("It was answered {status}, but {reason}."),
                None => format!("It was answered {status}."),
            };
            failure_outcome(end, rule, reason)
        }
    };
    AttemptResult { meta: said, outcome: what }
}

/// Interprets a 200 of GraphQL: errors are inside.
fn graphql_outcome(
    said: &ResponseMeta,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
    rule: RetryRule,
) -> AttemptOutcome {
    match said.graphql_outcome() {
        GraphqlOutcome::StillRunning => {
            AttemptOutcome::Failed("A request with the same key is still running.".into())
        }
        GraphqlOutcome::Done => AttemptOutcome::Done { status, headers, body },
        GraphqlOutcome::Throttled => {
            AttemptOutcome::Throttled { after: said.cost.delay_ms().map(Duration::from_millis) }
        }
        GraphqlOutcome::TooCostly { cost, most } => {
            AttemptOutcome::Refused(ShopifyErrorKind::TooCostly { cost: points(cost), most: points(most) })
        }
        GraphqlOutcome::Broken => {
            failure_outcome(INTERNAL_ERROR, rule, "It was answered INTERNAL_SERVER_ERROR.".into())
        }
        GraphqlOutcome::Refused(_) => AttemptOutcome::Refused(refusal_kind(said, &body)),
        GraphqlOutcome::Unreadable => failure_outcome(
            UNREADABLE,
            rule,
            format!("It was answered {status} with neither data nor errors that can be read."),
        ),
    }
}

fn refusal_kind(said: &ResponseMeta, body: &[u8]) -> ShopifyErrorKind {
    if let Some(error) = said.error(&GraphqlErrorCode::MaxCostExceeded) {
        let cost = error.cost.or(said.cost.requested).map_or(f64::INFINITY, points);
        let most = error.max_cost.map_or(QUERY_MAX, points);
        return ShopifyErrorKind::TooCostly { cost, most };
    }
    let codes =
        said.errors.iter().map(|error| error.code.as_str().to_owned()).filter(|code| !code.is_empty());
    let errors = json(body).get_mut("errors").map(Value::take).unwrap_or_default();
    ShopifyErrorKind::Graphql { codes: codes.collect(), errors: Box::new(errors) }
}

fn retry_after_429(headers: &HeaderMap, body: &[u8], at: Time) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let told = TooManyRequests { retry_after: text(RETRY_AFTER), date: text(DATE), body };
    from_429(&told, at).map(Duration::from_millis)
}

/// Parses the JSON of a body.
pub(crate) fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

fn points(micro: u64) -> f64 {
    micro as f64 / tidegate_core::operation::MICRO as f64
}
