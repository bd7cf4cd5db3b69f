//! A submission that waits for the end of its operation: the owner of its partition accepts it
//! first, then it is polled. So a node that dies in between loses nothing: the accepted operation
//! is polled again, wherever it is then.

use axum::Json;
use axum::body::to_bytes;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tidegate_core::State;

use super::relay::{self, ANSWER_LEN_MAX};
use super::{RoutedCall, RoutingState};
use crate::api::route::Idempotence;
use crate::api::submit::waited_status;
use crate::edge::prefer::WaitPreference;
use crate::edge::query::Query;
use crate::wire::error::ApiError;

pub(super) async fn route_submission(
    front: &RoutingState,
    call: RoutedCall,
    headers: &axum::http::HeaderMap,
) -> Response {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let mut query = Query::parse(query);
    let wait = WaitPreference::read(&mut query, headers);
    match query.finish().map(|()| wait) {
        Ok(None) => relay::by_placement(front, call).await,
        Ok(Some(wait)) => {
            let accepting = call.with_target(path.to_owned());
            submit_and_wait(front, accepting, wait).await
        }
        Err(error) => ApiError(error).into_response(),
    }
}

async fn submit_and_wait(front: &RoutingState, call: RoutedCall, wait: WaitPreference) -> Response {
    let accepted = relay::by_placement(front, call.clone()).await;
    if !matches!(accepted.status(), StatusCode::OK | StatusCode::ACCEPTED) {
        return accepted;
    }
    let (head, body) = accepted.into_parts();
    let body = to_bytes(body, ANSWER_LEN_MAX).await.unwrap_or_default();
    let receipt: Value = serde_json::from_slice(&body).unwrap_or_default();
    let accepted = || Response::from_parts(head.clone(), body.clone().into());
    let Some(id) = receipt["id"].as_str() else { return accepted() };
    let target = format!("/v1/operations/{id}?wait_ms={}", wait.most.as_millis());
    let look = RoutedCall {
        method: Method::GET,
        target,
        content_type: None,
        body: bytes::Bytes::new(),
        idempotence: Idempotence::Always,
        ..call
    };
    let ended = relay::by_id(front, look).await;
    if ended.status() != StatusCode::OK {
        // It was accepted, whatever became of the poll.
        return accepted();
    }
    let body = to_bytes(ended.into_body(), ANSWER_LEN_MAX).await.unwrap_or_default();
    let Ok(Value::Object(mut operation)) = serde_json::from_slice(&body) else { return accepted() };
    let is_duplicate = receipt["deduplicated"] == true;
    let state = operation.get("state").and_then(Value::as_str).and_then(State::parse);
    operation.insert("deduplicated".into(), is_duplicate.into());
    let status = waited_status(state.unwrap_or(State::Queued), is_duplicate);
    let mut response = (status, Json(Value::Object(operation))).into_response();
    wait.mark_applied(&mut response);
    response
}
