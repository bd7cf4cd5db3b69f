//! A submission that is repeated under its `Idempotency-Key` and waits: what is kept under the key
//! is which operation was accepted, so the repeat gets the operation as it is now. How long a
//! caller waits is no part of the request.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::Value;
use tidegate_core::{OperationId, State};

use super::prefer::WaitPreference;
use super::query::Query;

/// The path of the call.
const PATH: &str = "/v1/operations";
/// The header of a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The longest stored response that is read.
const LEN_MAX: usize = 64 * 1024 * 1024;

/// An operation that an earlier request accepted: it is awaited, not submitted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatedOperation {
    pub id: OperationId,
    pub deduplicated: bool,
}

impl RepeatedOperation {
    /// Reads the operation in a stored response, unless it had ended by then.
    fn parse(body: &[u8]) -> Option<Self> {
        let stored: Value = serde_json::from_slice(body).ok()?;
        let state = State::parse(stored["state"].as_str()?)?;
        let id = stored["id"].as_str()?.parse().ok()?;
        (!state.is_ended()).then_some(Self { id, deduplicated: stored["deduplicated"] == true })
    }
}

/// The query that was taken off a request.
#[derive(Clone)]
struct FullUri(Uri);

/// A submission with a key, as it came.
pub(super) struct RepeatableSubmission(Parts);

impl RepeatableSubmission {
    /// Takes off a submission what is not compared with an earlier one; `None` for any other call.
    pub(super) fn split(head: &mut Parts) -> Option<Self> {
        if head.uri.path() != PATH {
            return None;
        }
        let original = head.clone();
        head.extensions.insert(FullUri(std::mem::replace(&mut head.uri, Uri::from_static(PATH))));
        Some(Self(original))
    }

    /// Puts back what was taken off.
    pub(super) fn restore(head: &mut Parts) {
        if let Some(FullUri(uri)) = head.extensions.remove() {
            head.uri = uri;
        }
    }

    /// The response: a replayed one is brought up to date if its caller waits.
    pub(super) async fn respond(self, response: Response, next: Next) -> Response {
        let Self(mut head) = self;
        let mut query = Query::parse(head.uri.query().unwrap_or_default());
        let wait = WaitPreference::read(&mut query, &head.headers);
        if wait.is_none() || query.finish().is_err() || !response.headers().contains_key(&REPLAYED) {
            return response;
        }
        let (stored, body) = response.into_parts();
        let body = to_bytes(body, LEN_MAX).await.unwrap_or_default();
        let replayed = || Response::from_parts(stored, Body::from(body.clone()));
        let Some(accepted) = RepeatedOperation::parse(&body) else { return replayed() };
        head.extensions.insert(accepted);
        let mut response = next.run(Request::from_parts(head, Body::empty())).await;
        if !response.status().is_success() {
            // It was accepted, whatever became of the look at it.
            return replayed();
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}
