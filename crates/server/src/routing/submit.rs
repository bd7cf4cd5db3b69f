//! A submission that waits for the end of its operation: the owner of its partition accepts it
//! first, then it is polled. So a node that dies in between loses nothing: the accepted operation
//! is polled again, wherever it is then.

use axum::Json;
use axum::body::to_bytes;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tidegate_core::State;
use tidegate_core::bounds::PARTITION_RESPONSE_LEN_MAX;

use super::relay;
use super::{RoutedCall, RoutingState};
use crate::api::route::Idempotence;
use crate::api::submit::waited_status;
use crate::edge::prefer::WaitPreference;
use crate::edge::query::Query;
use crate::edge::repeated_submission::SubmittedOperation;
use crate::wire::error::ApiError;

pub(super) async fn route_submission(
    routing: &RoutingState,
    call: RoutedCall,
    headers: &axum::http::HeaderMap,
    submitted: Option<SubmittedOperation>,
) -> Response {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let mut query = Query::parse(query);
    let wait = WaitPreference::read(&mut query, headers);
    match query.finish().map(|()| wait) {
        Ok(None) => relay::by_placement(routing, call).await,
        Ok(Some(wait)) => {
            let call = call.with_target(path.to_owned());
            match submitted {
                Some(accepted) => wait_for_outcome(routing, call, accepted, wait).await.unwrap_or_else(lost),
                None => submit_and_wait(routing, call, wait).await,
            }
        }
        Err(error) => ApiError(error).into_response(),
    }
}

async fn submit_and_wait(routing: &RoutingState, call: RoutedCall, wait: WaitPreference) -> Response {
    let accepted = relay::by_placement(routing, call.clone()).await;
    if !matches!(accepted.status(), StatusCode::OK | StatusCode::ACCEPTED) {
        return accepted;
    }
    let (head, body) = accepted.into_parts();
    let body = to_bytes(body, PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
    let accepted = || Response::from_parts(head.clone(), body.clone().into());
    let Some(operation) = SubmittedOperation::parse(&body) else { return accepted() };
    // It was accepted, whatever became of the poll.
    wait_for_outcome(routing, call, operation, wait).await.unwrap_or_else(accepted)
}

/// Polls an accepted operation, wherever it is; `None` when that fails.
async fn wait_for_outcome(
    routing: &RoutingState,
    call: RoutedCall,
    SubmittedOperation { id, deduplicated }: SubmittedOperation,
    wait: WaitPreference,
) -> Option<Response> {
    let target = format!("/v1/operations/{id}?wait_ms={}", wait.most.as_millis());
    let look = RoutedCall {
        method: Method::GET,
        target,
        content_type: None,
        body: bytes::Bytes::new(),
        idempotence: Idempotence::Always,
        ..call
    };
    let ended = relay::by_id(routing, look).await;
    if ended.status() != StatusCode::OK {
        return None;
    }
    let body = to_bytes(ended.into_body(), PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
    let Ok(Value::Object(mut operation)) = serde_json::from_slice(&body) else { return None };
    let state = operation.get("state").and_then(Value::as_str).and_then(State::parse);
    operation.insert("deduplicated".into(), deduplicated.into());
    let status = waited_status(state.unwrap_or(State::Queued));
    let mut response = (status, Json(Value::Object(operation))).into_response();
    wait.mark_applied(&mut response);
    Some(response)
}

/// The response when an operation could not be polled.
fn lost() -> Response {
    StatusCode::BAD_GATEWAY.into_response()
}
