//! The responses to clients of the paced proxy: the upstream's own response, all of it, or the
//! reason why there is none. Every response about an accepted call names its operation, and every
//! error of ours its code.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, RETRY_AFTER, SET_COOKIE, TRAILER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tidegate::OperationView;
use tidegate_core::{Fault, FaultClass, OperationId, State, Time};
use tidegate_idempotency::strip_hop_by_hop;
use tidegate_upstream::http::response::Content;
use tidegate_upstream::http::{CompleteResponse, StreamingResponse};

use super::request::is_ours;
use crate::error::{Error, ErrorCode};
use crate::wire::error::{ApiError, ERROR};

/// The header that names the operation of a response.
pub(crate) const OPERATION: HeaderName = HeaderName::from_static("x-tidegate-operation");
/// The prefix of the CORS headers, by which a server lets other sites read its responses.
const SHARED: &str = "access-control-";
/// A policy with no scripts, no forms, and an origin of its own.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");
/// Between nodes: the partition has moved, and the operation continues on another node.
const MOVED: HeaderName = HeaderName::from_static("x-tidegate-moved");

/// The response for an ended operation, to the client that waited for it.
pub(crate) fn ended_response(
    method: &Method,
    view: &OperationView,
    whole: Option<CompleteResponse>,
    retry_after: Option<Duration>,
) -> Response {
    let fault = view.fault.as_ref();
    let is_throttled = fault.is_some_and(|fault| fault.class == FaultClass::RateLimited);
    match whole.filter(|_| !is_throttled) {
        Some(CompleteResponse { status, headers, content: Content::Whole(body) }) => {
            upstream_response(method, view.id, status, headers, body)
        }
        Some(CompleteResponse { status, content: Content::TooLarge { most }, .. }) => {
            let message = format!(
                "The upstream returned {status} with more than {most} bytes, which cannot be forwarded."
            );
            failure_response(Error::new(ErrorCode::NoAnswer, message), view.id)
        }
        _ => {
            let response = no_answer_response(view.id, view.state, view.attempt, fault);
            with_retry_after(response, retry_after.filter(|_| is_throttled))
        }
    }
}

/// The response when there is no upstream response to return.
pub(crate) fn no_answer_response(
    id: OperationId,
    state: State,
    attempt: u16,
    fault: Option<&Fault>,
) -> Response {
    let error = match fault {
        // What it was canceled after may have had an effect.
        Some(fault) if state == State::Canceled && attempt > 0 => {
            Error::new(ErrorCode::NoAnswer, format!("{id} was canceled after this: {}", fault.message))
        }
        _ if state == State::Canceled => Error::new(ErrorCode::NoAnswer, format!("{id} was canceled.")),
        // It was never sent, or only throttled for longer than it may wait.
        Some(fault) if attempt == 0 || fault.class == FaultClass::RateLimited => {
            Error::new(ErrorCode::NotInTime, fault.message.clone())
        }
        Some(fault) => Error::new(ErrorCode::NoAnswer, fault.message.clone()),
        None => Error::new(ErrorCode::NoAnswer, format!("{id} has ended and its response was not stored.")),
    };
    let is_throttled = fault.is_some_and(|fault| fault.class == FaultClass::RateLimited);
    let mut response = failure_response(error, id);
    if is_throttled && state != State::Canceled {
        // The upstream refused it, so nothing happened.
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    }
    response
}

/// The response when a call cannot start within the time that it may wait, and it is known when it
/// can. Nothing was sent.
pub(crate) fn too_late_response(earliest: Time, now: Time, wait: Duration) -> Response {
    let after = earliest.since(now);
    let message = format!(
        "Its limits let it start in {} s, and a call waits at most {} s ([pacing] wait_s). Nothing was sent.",
        seconds_up(after),
        wait.as_secs()
    );
    let mut error = Error::new(ErrorCode::TooLate, message);
    error.earliest = Some(earliest);
    with_retry_after(refusal_response(error), Some(after))
}

fn with_retry_after(mut response: Response, after: Option<Duration>) -> Response {
    if let Some(after) = after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds_up(after)));
    }
    response
}

/// Whole seconds, rounded up, at least one.
fn seconds_up(span: Duration) -> u64 {
    u64::try_from(span.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1)
}

/// The upstream's own response, streamed.
pub(crate) fn streamed_response(method: &Method, id: OperationId, streaming: StreamingResponse) -> Response {
    let StreamingResponse { status, headers, body } = streaming;
    build_upstream_response(method, id, status, headers, Body::new(body))
}

/// The upstream's own response.
pub(crate) fn upstream_response(
    method: &Method,
    id: OperationId,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    build_upstream_response(method, id, status, headers, Body::from(body))
}

fn build_upstream_response(
    method: &Method,
    id: OperationId,
    status: u16,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Ok(status) = StatusCode::from_u16(status) else {
        let error = Error::new(
            ErrorCode::NoAnswer,
            format!("The upstream returned {status}, which is not a valid status."),
        );
        return failure_response(error, id);
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut headers = headers;
    strip_hop_by_hop(&mut headers);
    let ours: Vec<_> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    // Cookies are never forwarded to the upstream, and all clients share its one credential.
    ours.into_iter().chain([TRAILER, SET_COOKIE]).for_each(|name| drop(headers.remove(name)));
    if !has_no_body(method, status) {
        // That was the length on the upstream's connection; on this one it follows from the body.
        headers.remove(CONTENT_LENGTH);
    }
    *response.headers_mut() = headers;
    without_made_up_length(method, with_operation_id(response, id))
}

/// Prevents a made-up `Content-Length` where there is no body.
pub(crate) fn without_made_up_length(method: &Method, response: Response) -> Response {
    if has_no_body(method, response.status()) && !response.headers().contains_key(CONTENT_LENGTH) {
        let nothing = stream::empty::<Result<Bytes, std::convert::Infallible>>();
        return response.map(|_| Body::from_stream(nothing));
    }
    response
}

fn has_no_body(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || status == StatusCode::NOT_MODIFIED
}

/// The response to a request that was refused before anything was accepted.
pub(crate) fn refusal_response(error: Error) -> Response {
    let status = match error.code {
        ErrorCode::UnknownUpstream => Some(StatusCode::NOT_FOUND),
        ErrorCode::TooLate => Some(StatusCode::TOO_MANY_REQUESTS),
        _ => None,
    };
    let mut response = ApiError(error).into_response();
    if let Some(status) = status {
        *response.status_mut() = status;
    }
    response
}

/// The response when the engine refuses a submission. If it is unknown whether it was accepted, it
/// may be sent: a client that is told to retry would have it sent twice, unless it only reads.
pub(crate) fn submit_error_response(method: &Method, error: Error) -> Response {
    if !error.unsure || method.is_safe() {
        return refusal_response(error);
    }
    let message = "Whether it was accepted is not known: the store's answer was lost. It may be sent.";
    ApiError(Error::new(ErrorCode::NoAnswer, message)).into_response()
}

/// The response for a failure of an accepted operation.
pub(crate) fn failure_response(error: Error, id: OperationId) -> Response {
    with_operation_id(ApiError(error.operation(id)).into_response(), id)
}

/// The response when a call waited in vain for a limit that it is now known to wait longer for. It
/// was canceled.
pub(crate) fn limited_response(id: OperationId, after: Duration, waited_s: u64) -> Response {
    let message = format!(
        "Its limits let it continue in {} s, and it may wait for {waited_s} s. It was canceled: nothing more is sent.",
        seconds_up(after)
    );
    let mut response = failure_response(Error::new(ErrorCode::NotInTime, message), id);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    with_retry_after(response, Some(after))
}

/// The response when the upstream's response did not come in time.
pub(crate) fn timeout_response(id: OperationId, is_called_off: bool, waited_s: u64) -> Response {
    let rest = if is_called_off {
        "It was canceled and will not be sent."
    } else {
        "It may be in flight, and is not sent again; look up its outcome by its id."
    };
    failure_response(
        Error::new(ErrorCode::NotInTime, format!("There was no response within {waited_s} s. {rest}")),
        id,
    )
}

/// The response, between nodes, for an accepted operation that continues on another node.
pub(crate) fn moved_response(id: OperationId) -> Response {
    let mut response = with_operation_id(StatusCode::MISDIRECTED_REQUEST.into_response(), id);
    response.headers_mut().insert(MOVED, HeaderValue::from_static("1"));
    response
}

/// The operation that continues on another node, if the response says so.
pub(crate) fn moved_operation(response: &Response) -> Option<OperationId> {
    response.headers().get(&MOVED)?;
    response.headers().get(&OPERATION)?.to_str().ok()?.parse().ok()
}

/// Marks the outcome of a call between nodes as unknown: a client should not repeat it by itself.
pub(crate) fn unknown_outcome_response(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response.headers_mut().remove(RETRY_AFTER);
    response
}

/// Restricts what a browser may do with an upstream's response under this server's origin: show it,
/// and nothing else. What the upstream permits other sites holds for its own origin only.
pub(crate) fn sandbox(headers: &mut HeaderMap) {
    let shared: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(SHARED)).cloned().collect();
    shared.into_iter().for_each(|name| drop(headers.remove(name)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // In addition to the upstream's own policy, which may be stricter. A response from another node
    // has it already.
    if !headers.get_all(CONTENT_SECURITY_POLICY).iter().any(|policy| policy == SANDBOX) {
        headers.append(CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// Whether a response is the upstream's: nothing of ours belongs on it but what keeps browsers
/// safe.
pub(crate) fn is_from_upstream(response: &Response) -> bool {
    response.headers().contains_key(&OPERATION) && !response.headers().contains_key(&ERROR)
}

fn with_operation_id(mut response: Response, id: OperationId) -> Response {
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(OPERATION, id);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-28, OPS-23: a client is told to retry only what certainly was not accepted, or only
    /// reads.
    #[test]
    fn lim_28_ops_23_what_may_have_been_accepted_is_not_to_be_repeated() {
        let away = || Error::new(ErrorCode::StoreUnavailable, "away");
        let unsure = || {
            let mut error = away();
            error.unsure = true;
            error
        };
        let answer = |method: &Method, error| {
            let response = submit_error_response(method, error);
            (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER))
        };
        assert_eq!(answer(&Method::POST, away()), (503, true));
        assert_eq!(answer(&Method::GET, unsure()), (503, true));
        assert_eq!(answer(&Method::POST, unsure()), (502, false));
    }
}
