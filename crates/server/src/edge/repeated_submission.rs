//! A submission under an `Idempotency-Key`. What the key covers is the acceptance: which operation
//! was accepted is kept under it before anyone waits, so that a repeat finds that operation and
//! waits for it too, whatever became of the first request. How long a caller waits is no part of
//! the request.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::Value;
use tidegate_core::OperationId;

use super::prefer::{PREFER, WaitPreference};
use super::query::Query;
use crate::error::Result;

/// The path of the call.
const PATH: &str = "/v1/operations";
/// What the layer says about a response: that it is a replay, or that nothing protects it.
const ABOUT_KEY: [HeaderName; 2] =
    [HeaderName::from_static("idempotent-replayed"), HeaderName::from_static("idempotency-unprotected")];
/// The longest response that is read.
const LEN_MAX: usize = 64 * 1024 * 1024;

/// An operation that was accepted: it is awaited, not submitted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmittedOperation {
    pub id: OperationId,
    pub deduplicated: bool,
}

impl SubmittedOperation {
    /// Reads the operation in a response to a submission.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let accepted: Value = serde_json::from_slice(body).ok()?;
        let id = accepted["id"].as_str()?.parse().ok()?;
        Some(Self { id, deduplicated: accepted["deduplicated"] == true })
    }
}

/// A submission with a key, as it came, whose caller waits.
pub(super) struct WaitingSubmission(Parts);

impl WaitingSubmission {
    /// Takes the wait off a submission, so that what is left ends when it is accepted; `None` for a
    /// submission that does not wait, and for any other call.
    ///
    /// # Errors
    /// When its query is invalid.
    pub(super) fn split(head: &mut Parts) -> Result<Option<Self>> {
        if head.uri.path() != PATH {
            return Ok(None);
        }
        let mut query = Query::parse(head.uri.query().unwrap_or_default());
        let wait = WaitPreference::read(&mut query, &head.headers);
        query.finish()?;
        let original = head.clone();
        head.uri = Uri::from_static(PATH);
        head.headers.remove(PREFER);
        Ok(wait.map(|_| Self(original)))
    }

    /// The response: the operation that was accepted, now or before, after the wait.
    pub(super) async fn respond(self, response: Response, next: Next) -> Response {
        let Self(mut head) = self;
        if !response.status().is_success() {
            return response;
        }
        let (accepted, body) = response.into_parts();
        // Its end comes when it is kept under the key.
        let body = to_bytes(body, LEN_MAX).await.unwrap_or_default();
        let Some(operation) = SubmittedOperation::parse(&body) else {
            return Response::from_parts(accepted, Body::from(body));
        };
        head.extensions.insert(operation);
        let mut response = next.run(Request::from_parts(head, Body::empty())).await;
        if !response.status().is_success() {
            // It was accepted, whatever became of the look at it.
            return Response::from_parts(accepted, Body::from(body));
        }
        for name in ABOUT_KEY {
            if let Some(value) = accepted.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}
