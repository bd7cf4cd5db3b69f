//! What a client of the proxy is told: the upstream's own answer, all of it, or why there is none. Every answer about an
//! accepted call names its operation, and one of ours its code.

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, RETRY_AFTER, TRAILER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tidegate::{Error, ErrorCode, OperationView};
use tidegate_core::{Fault, FaultClass, OperationId, State};
use tidegate_idempotency::strip_hop_by_hop;
use tidegate_upstream::http::response::Content;
use tidegate_upstream::http::{CompleteResponse, StreamingResponse};

use super::request::is_ours;
use crate::wire::error::{ApiError, ERROR};

/// Which operation an answer is about.
pub(crate) const OPERATION: HeaderName = HeaderName::from_static("x-tidegate-operation");
/// What the names of headers begin with by which a server lets other sites read its answers.
const SHARED: &str = "access-control-";
/// No scripts, no forms, and an origin of its own.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");
/// Among nodes: its partition has moved, and it goes on elsewhere.
const MOVED: HeaderName = HeaderName::from_static("x-tidegate-moved");

/// What became of an operation, to whoever waited for it here.
pub(crate) fn ended_response(
    method: &Method,
    view: &OperationView,
    whole: Option<CompleteResponse>,
) -> Response {
    let fault = view.fault.as_ref();
    let is_throttled = fault.is_some_and(|fault| fault.class == FaultClass::RateLimited);
    match whole.filter(|_| !is_throttled) {
        Some(CompleteResponse { status, headers, content: Content::Whole(body) }) => {
            upstream_response(method, view.id, status, headers, body)
        }
        Some(CompleteResponse { status, content: Content::TooLarge { most }, .. }) => {
            let message =
                format!("It was answered {status} with more than {most} bytes, which cannot be passed on.");
            failure_response(Error::new(ErrorCode::NoAnswer, message), view.id)
        }
        _ => no_answer_response(view.id, view.state, view.attempt, fault),
    }
}

/// Why there is no answer to give.
pub(crate) fn no_answer_response(
    id: OperationId,
    state: State,
    attempt: u16,
    fault: Option<&Fault>,
) -> Response {
    let error = match fault {
        _ if state == State::Canceled => Error::new(ErrorCode::NoAnswer, format!("{id} was called off.")),
        // It never left, or only to be told to wait for longer than it may.
        Some(fault) if attempt == 0 || fault.class == FaultClass::RateLimited => {
            Error::new(ErrorCode::NotInTime, fault.message.clone())
        }
        Some(fault) => Error::new(ErrorCode::NoAnswer, fault.message.clone()),
        None => Error::new(ErrorCode::NoAnswer, format!("{id} has ended and its answer was not kept.")),
    };
    failure_response(error, id)
}

/// The upstream's own answer, which is passed on while it comes.
pub(crate) fn streamed_response(method: &Method, id: OperationId, streaming: StreamingResponse) -> Response {
    let StreamingResponse { status, headers, body } = streaming;
    build_upstream_response(method, id, status, headers, Body::new(body))
}

/// The upstream's own answer.
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
        let error = Error::new(ErrorCode::NoAnswer, format!("It was answered {status}, which is no status."));
        return failure_response(error, id);
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut headers = headers;
    strip_hop_by_hop(&mut headers);
    let ours: Vec<_> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    ours.into_iter().chain([TRAILER]).for_each(|name| drop(headers.remove(name)));
    if !has_no_body(method, status) {
        // What it was on the other line; on this one it follows from the body.
        headers.remove(CONTENT_LENGTH);
    }
    *response.headers_mut() = headers;
    without_made_up_length(method, with_operation_id(response, id))
}

/// A length that nobody has said is not made up where there is no body.
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

/// A refusal before anything was accepted.
pub(crate) fn refusal_response(error: Error) -> Response {
    let status = match error.code {
        ErrorCode::UnknownUpstream => Some(StatusCode::NOT_FOUND),
        ErrorCode::TooLate => Some(StatusCode::GATEWAY_TIMEOUT),
        _ => None,
    };
    let mut response = ApiError(error).into_response();
    if let Some(status) = status {
        *response.status_mut() = status;
    }
    response
}

/// A refusal of the engine's. Where nobody knows whether it was accepted, it may be sent: a client that repeats what it is
/// told to come back with would have it made twice, unless it only reads.
pub(crate) fn submit_error_response(method: &Method, error: Error) -> Response {
    if !error.unsure || method.is_safe() {
        return refusal_response(error);
    }
    let message = "Whether it was accepted is not known: the store's answer was lost. It may be sent.";
    ApiError(Error::new(ErrorCode::NoAnswer, message)).into_response()
}

/// A failure of an operation that was accepted.
pub(crate) fn failure_response(error: Error, id: OperationId) -> Response {
    with_operation_id(ApiError(error.operation(id)).into_response(), id)
}

/// It was not answered in time.
pub(crate) fn timeout_response(id: OperationId, is_called_off: bool, waited_s: u64) -> Response {
    let rest = if is_called_off {
        "It was called off and is not sent any more."
    } else {
        "It may be under way; what becomes of it can be looked up."
    };
    failure_response(
        Error::new(ErrorCode::NotInTime, format!("There was no answer within {waited_s} s. {rest}")),
        id,
    )
}

/// It was accepted, and goes on in another node.
pub(crate) fn moved_response(id: OperationId) -> Response {
    let mut response = with_operation_id(StatusCode::MISDIRECTED_REQUEST.into_response(), id);
    response.headers_mut().insert(MOVED, HeaderValue::from_static("1"));
    response
}

/// The operation that goes on elsewhere, if an answer says so.
pub(crate) fn moved_operation(response: &Response) -> Option<OperationId> {
    response.headers().get(&MOVED)?;
    response.headers().get(&OPERATION)?.to_str().ok()?.parse().ok()
}

/// Nobody knows what became of a call between nodes: not something that a client should repeat by itself.
pub(crate) fn unknown_outcome_response(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response.headers_mut().remove(RETRY_AFTER);
    response
}

/// What a browser may do with an upstream's answer under this server's name: show it, and nothing else. What the
/// upstream lets other sites do holds for its own name.
pub(crate) fn sandbox(headers: &mut HeaderMap) {
    let shared: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(SHARED)).cloned().collect();
    shared.into_iter().for_each(|name| drop(headers.remove(name)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Beside the upstream's own policy, which may ask for more. An answer that another node gave has it already.
    if !headers.get_all(CONTENT_SECURITY_POLICY).iter().any(|policy| policy == SANDBOX) {
        headers.append(CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// Whether an answer is the upstream's: nothing of ours belongs on it but what keeps browsers safe.
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

    /// LIM-28, OPS-23: a client is told to come back only with what surely was not accepted, or only reads.
    #[test]
    fn lim_28_ops_23_what_may_have_been_accepted_is_not_to_be_repeated() {
        let away = || Error::new(ErrorCode::StoreUnavailable, "away");
        let unsure = || Error { unsure: true, ..away() };
        let told = |method: &Method, error| {
            let response = submit_error_response(method, error);
            (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER))
        };
        assert_eq!(told(&Method::POST, away()), (503, true));
        assert_eq!(told(&Method::GET, unsure()), (503, true));
        assert_eq!(told(&Method::POST, unsure()), (502, false));
    }
}
