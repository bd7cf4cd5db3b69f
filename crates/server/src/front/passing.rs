//! A client's call to an upstream, passed whole to the node that owns its place and answered there. When that place moves
//! while it waits, it is followed, and its answer is what is stored of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use tidegate_core::OperationId;
use tidegate_idempotency::OutcomeClass;
use tokio::time::Instant;

use super::reach::Head;
use super::relay::{self, ANSWER_LEN_MAX, Again};
use super::{Call, Front};
use crate::app::House;
use crate::pacing::answer::{self, bodiless};
use crate::pacing::request::{GROUP, end_to_end};
use crate::pacing::stored;
use crate::pacing::target::{PREFIX, Target};

/// What a client's header is called between nodes, so that none of theirs is in its way.
const PACKED: &str = "x-tidegate-passed-";
/// Longest time that one look at an operation waits, in milliseconds.
const LOOK_MS: u128 = 30_000;
/// A pause after a look that told nothing.
const BREATH: Duration = Duration::from_millis(250);

/// What goes along with a call to an upstream.
#[derive(Debug)]
pub(crate) struct Passing {
    /// The client's own headers.
    pub headers: HeaderMap,
    /// The longest that it takes.
    pub within: Duration,
}

impl Passing {
    /// Of a client's headers.
    pub(super) fn of(house: &House, headers: HeaderMap) -> Arc<Self> {
        let headers = end_to_end(headers, !house.tokens.is_empty());
        Arc::new(Self { headers, within: house.pacing.within() })
    }

    /// Puts the headers beside those of the node.
    pub(super) fn pack(&self, into: &mut HeaderMap) {
        for (name, value) in &self.headers {
            if let Ok(name) = HeaderName::from_bytes(format!("{PACKED}{name}").as_bytes()) {
                into.append(name, value.clone());
            }
        }
    }

    /// And takes them out again.
    pub(super) fn unpacked(house: &House, target: &str, from: &HeaderMap) -> Option<Arc<Self>> {
        if !target.starts_with(PREFIX) {
            return None;
        }
        let mut headers = HeaderMap::new();
        for (name, value) in from {
            let name = name.as_str().strip_prefix(PACKED);
            if let Some(name) = name.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()) {
                headers.append(name, value.clone());
            }
        }
        Some(Arc::new(Self { headers, within: house.pacing.within() }))
    }

    fn group(&self) -> Option<Cow<'_, str>> {
        self.headers.get(GROUP).map(|group| String::from_utf8_lossy(group.as_bytes()))
    }
}

pub(super) async fn pass(front: &Front, call: Call) -> Response {
    let begun = Instant::now();
    let response = relay::to(front, place(front, &call), &call, again(front, &call)).await;
    let response = match answer::moved_on(&response) {
        Some(id) => follow(front, &call, id, begun + front.house.pacing.config.wait).await,
        None if response.extensions().get::<OutcomeClass>() == Some(&OutcomeClass::Unknown) => {
            answer::unknown(response)
        }
        None => response,
    };
    bodiless(&call.method, response)
}

/// Where it belongs; one whose upstream is not known has a place too, where that is told.
fn place(front: &Front, call: &Call) -> tidegate_core::id::Partition {
    let Some(Target { upstream, .. }) = Target::read(&call.target) else { return 0 };
    let group = call.passing.as_ref().and_then(|passing| passing.group());
    // One without a group stands behind no other: where calls are spread, it may go anywhere.
    let group = group.unwrap_or_else(|| Cow::Borrowed(&*call.request_id));
    Head::of(upstream.clone(), group).place(front)
}

/// Only what changes nothing is handed in again when it may have arrived: by its method, or as its dialect knows.
fn again(front: &Front, call: &Call) -> Again {
    let headers = call.passing.as_ref().map(|passing| &passing.headers);
    let content_type = headers.and_then(|headers| headers.get(CONTENT_TYPE)?.to_str().ok());
    let (method, pacing) = (&call.method, &front.house.pacing);
    let reads = || pacing.only_reads(method.as_str(), &call.target, content_type, &call.body);
    if method.is_safe() || reads() { Again::Yes } else { Again::No }
}

/// Waits for an operation whose partition went to another node. It ends there by its deadline at the latest.
async fn follow(front: &Front, call: &Call, id: OperationId, end: Instant) -> Response {
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let look = Call {
            method: Method::GET,
            target: format!("/v1/operations/{id}?wait_ms={}", left.min(LOOK_MS)),
            body: bytes::Bytes::new(),
            content_type: None,
            passing: None,
            ..call.clone()
        };
        let told = relay::to(front, id.partition(), &look, Again::Yes).await;
        if let Ok(told) = Limited::new(told.into_body(), ANSWER_LEN_MAX).collect().await
            && let Some(response) = stored::ended(&call.method, id, &told.to_bytes())
        {
            return response;
        }
        if left == 0 {
            return answer::late(id, false, front.house.pacing.config.wait.as_secs());
        }
        tokio::time::sleep(BREATH).await;
    }
}
