//! One attempt at a call, and what its answer means for whether it is repeated. It waits for nothing and repeats nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use serde_json::Value;
use tidegate_core::{Time, Verdict};
use tidegate_store::Clock;
use tidegate_upstream::http::answer::{Answer, Content};
use tidegate_upstream::http::send::Sender;
use tidegate_upstream::{Call, HttpRequest};

use super::error::Kind;
use crate::delay::{TooMany, from_429};
use crate::said::{Answered, Code, Said};

/// The most that one query may cost, on every plan, in points.
const QUERY_MAX: f64 = 1_000.0;

/// Sends to one shop.
pub(crate) struct Wire {
    pub(crate) sender: Sender,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Which language a call speaks, and so where its answer says what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Graphql,
    Rest,
}

/// What became of one attempt.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) said: Said,
    pub(crate) what: What,
}

/// What an attempt means.
#[derive(Debug)]
pub(crate) enum What {
    /// It ran, and this came back.
    Done { status: u16, headers: HeaderMap, body: Bytes },
    /// It did not run; it may after this time.
    Throttled { after: Option<Duration> },
    /// It was not sent.
    NotSent(String),
    /// It may have run.
    Unsure(String),
    /// It did not run, and repeating is pointless.
    Refused(Kind),
}

impl Wire {
    /// Sends it, once.
    pub(crate) async fn attempt(&self, request: HttpRequest, speech: Speech, operation: &str) -> Tried {
        let call = Call {
            payload: b"",
            attempt: 1,
            look_first: false,
            now: self.clock.now(),
            deadline: None,
            operation,
        };
        match self.sender.exchange(request, call).await {
            Ok(answer) => judge(answer, speech),
            Err(missed) => Tried { said: Said::default(), what: missing(missed.verdict) },
        }
    }
}

fn missing(verdict: Verdict) -> What {
    match verdict {
        Verdict::Retry { fault, .. } => What::NotSent(fault.message),
        Verdict::Unknown(fault) | Verdict::Rejected(fault) | Verdict::Throttled { fault, .. } => {
            What::Unsure(fault.message)
        }
        Verdict::Done | Verdict::GivenBack | Verdict::Canceled { .. } => {
            What::Unsure("No answer came.".into())
        }
    }
}

/// What an answer means.
pub(crate) fn judge(answer: Answer, speech: Speech) -> Tried {
    let Answer { status, headers, content, at } = answer;
    let (body, cut) = match content {
        Content::Whole(body) => (body, None),
        Content::TooLarge { most } => {
            (Bytes::new(), Some(format!("its body is larger than the {most} bytes that are taken")))
        }
        Content::Cut(reason) => (Bytes::new(), Some(reason)),
        Content::PassedOn => (Bytes::new(), Some("its body went elsewhere".to_owned())),
    };
    let said = match speech {
        Speech::Graphql => Said::in_graphql(&headers, &body),
        Speech::Rest => Said::in_headers(&headers),
    };
    let what = match status.as_u16() {
        429 => What::Throttled { after: told_429(&headers, &body, at) },
        200..=299 => match cut {
            Some(reason) => What::Unsure(format!("It was answered {status}, but {reason}.")),
            None if speech == Speech::Graphql => graphql(&said, status.as_u16(), headers, body),
            None => What::Done { status: status.as_u16(), headers, body },
        },
        408 | 425 | 500..=599 => What::Unsure(format!("It was answered {status}.")),
        status => What::Refused(Kind::Refused { status, body: Box::new(json(&body)) }),
    };
    Tried { said, what }
}

/// What a 200 of GraphQL means: errors are inside.
fn graphql(said: &Said, status: u16, headers: HeaderMap, body: Bytes) -> What {
    match said.answered() {
        Answered::StillRunning => What::Unsure("The same key is at work already.".into()),
        Answered::Done => What::Done { status, headers, body },
        Answered::Throttled => What::Throttled { after: said.cost.delay_ms().map(Duration::from_millis) },
        Answered::TooCostly { cost, most } => {
            What::Refused(Kind::TooCostly { cost: points(cost), most: points(most) })
        }
        Answered::Broken => What::Unsure("It was answered INTERNAL_SERVER_ERROR.".into()),
        Answered::Refused(_) => What::Refused(refused(said, &body)),
        Answered::Unreadable => {
            What::Unsure(format!("It was answered {status} with neither data nor errors that can be read."))
        }
    }
}

fn refused(said: &Said, body: &[u8]) -> Kind {
    if let Some(error) = said.error(&Code::MaxCostExceeded) {
        let cost = error.cost.or(said.cost.requested).map_or(f64::INFINITY, points);
        let most = error.max_cost.map_or(QUERY_MAX, points);
        return Kind::TooCostly { cost, most };
    }
    let codes =
        said.errors.iter().map(|error| error.code.as_str().to_owned()).filter(|code| !code.is_empty());
    let errors = json(body).get_mut("errors").map(Value::take).unwrap_or_default();
    Kind::Graphql { codes: codes.collect(), errors: Box::new(errors) }
}

fn told_429(headers: &HeaderMap, body: &[u8], at: Time) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let told = TooMany { retry_after: text(RETRY_AFTER), date: text(DATE), body };
    from_429(&told, at).map(Duration::from_millis)
}

/// What is JSON of a body.
pub(crate) fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

fn points(micro: u64) -> f64 {
    micro as f64 / tidegate_core::operation::MICRO as f64
}
