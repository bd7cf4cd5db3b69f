//! One attempt at a call, and whether its response allows a retry. It neither waits nor retries.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use serde_json::Value;
use tidegate_core::{Time, Verdict};
use tidegate_store::Clock;
use tidegate_upstream::http::response::{Content, UpstreamResponse};
use tidegate_upstream::http::send::Sender;
use tidegate_upstream::{Call, HttpRequest};

use super::error::ShopifyErrorKind;
use crate::delay::{TooManyRequests, from_429};
use crate::response_meta::{GraphqlErrorCode, GraphqlOutcome, ResponseMeta};

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
    /// It may have run.
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
        operation: &str,
    ) -> AttemptResult {
        let call = Call {
            payload: b"",
            attempt: 1,
            reconcile_first: false,
            now: self.clock.now(),
            deadline: None,
            operation,
            completion_token: None,
        };
        match self.sender.exchange(request, call).await {
            Ok(answer) => interpret(answer, speech),
            Err(missed) => {
                AttemptResult { meta: ResponseMeta::default(), outcome: no_answer_outcome(missed.verdict) }
            }
        }
    }
}

fn no_answer_outcome(verdict: Verdict) -> AttemptOutcome {
    match verdict {
        Verdict::Retry { fault, .. } => AttemptOutcome::NotSent(fault.message),
        Verdict::Unknown(fault) | Verdict::Rejected(fault) | Verdict::Throttled { fault, .. } => {
            AttemptOutcome::Unknown(fault.message)
        }
        Verdict::Done | Verdict::Accepted { .. } | Verdict::Returned | Verdict::Canceled { .. } => {
            AttemptOutcome::Unknown("No answer came.".into())
        }
    }
}

/// Interprets a response.
pub(crate) fn interpret(answer: UpstreamResponse, speech: ApiKind) -> AttemptResult {
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
    let what = match status.as_u16() {
        429 => AttemptOutcome::Throttled { after: retry_after_429(&headers, &body, at) },
        200..=299 => match cut {
            Some(reason) => AttemptOutcome::Unknown(format!("It was answered {status}, but {reason}.")),
            None if speech == ApiKind::Graphql => graphql_outcome(&said, status.as_u16(), headers, body),
            None => AttemptOutcome::Done { status: status.as_u16(), headers, body },
        },
        408 | 425 | 500..=599 => AttemptOutcome::Unknown(format!("It was answered {status}.")),
        status => AttemptOutcome::Refused(ShopifyErrorKind::Refused { status, body: Box::new(json(&body)) }),
    };
    AttemptResult { meta: said, outcome: what }
}

/// Interprets a 200 of GraphQL: errors are inside.
fn graphql_outcome(said: &ResponseMeta, status: u16, headers: HeaderMap, body: Bytes) -> AttemptOutcome {
    match said.graphql_outcome() {
        GraphqlOutcome::StillRunning => {
            AttemptOutcome::Unknown("A request with the same key is still running.".into())
        }
        GraphqlOutcome::Done => AttemptOutcome::Done { status, headers, body },
        GraphqlOutcome::Throttled => {
            AttemptOutcome::Throttled { after: said.cost.delay_ms().map(Duration::from_millis) }
        }
        GraphqlOutcome::TooCostly { cost, most } => {
            AttemptOutcome::Refused(ShopifyErrorKind::TooCostly { cost: points(cost), most: points(most) })
        }
        GraphqlOutcome::Broken => AttemptOutcome::Unknown("It was answered INTERNAL_SERVER_ERROR.".into()),
        GraphqlOutcome::Refused(_) => AttemptOutcome::Refused(refusal_kind(said, &body)),
        GraphqlOutcome::Unreadable => AttemptOutcome::Unknown(format!(
            "It was answered {status} with neither data nor errors that can be read."
        )),
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
