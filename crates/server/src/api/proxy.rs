//! `/proxy/{upstream}/…`: submits a client's request, waits for its end and returns the upstream's
//! response. A client that disconnects leaves nothing in the queue; a call in flight completes, and
//! no further attempt follows it.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use tidegate::{OperationView, Submission};
use tidegate_core::{FaultClass, OperationId, State as OperationState};
use tidegate_upstream::http::ResponseWaiter;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::edge::content::{IncomingBody, RequestBody};
use crate::edge::request_id::RequestId;
use crate::error::{Error, ErrorCode, Result};
use crate::pacing::request::{ProxyRequest, end_to_end_headers};
use crate::pacing::{body, response};
use crate::state::SharedPartition;
use crate::telemetry;
use crate::wire::error::ApiError;

pub(super) async fn proxy_request(
    State(app): State<SharedPartition>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: RequestBody,
) -> Response {
    if app.server.stopping.is_cancelled() {
        return response::refusal_response(stopping());
    }
    let arriving = match body.read_or_stream().await {
        Ok(arriving) => arriving,
        Err(error) => return response::refusal_response(error),
    };
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let headers = end_to_end_headers(headers, app.server.tokens.are_required());
    let asked = ProxyRequest { method: &method, target, headers, body: None, request_id };
    let (submission, expected) = match build_submission(&app, asked, arriving).await {
        Ok(ready) => ready,
        Err(error) => {
            telemetry::record_refused(&error);
            return response::refusal_response(error);
        }
    };
    let (tell, told) = oneshot::channel();
    // In its own task, so that it knows its operation even if the client disconnects right now.
    tokio::spawn(submit_and_wait(app, method, submission, expected, tell));
    told.await.unwrap_or_else(|_| {
        ApiError(Error::new(ErrorCode::Internal, "The call was dropped; this is a bug.")).into_response()
    })
}

/// Builds the operation of a request. Its body is stored with it, or streamed if it is too large
/// for that.
async fn build_submission(
    app: &SharedPartition,
    asked: ProxyRequest<'_>,
    arriving: IncomingBody,
) -> Result<(Submission, ResponseWaiter)> {
    let pacing = &app.server.pacing;
    let (first, rest, len) = match arriving {
        IncomingBody::Whole(body) => {
            match (ProxyRequest { body: Some(body.clone()), ..asked.clone() }).into_submission(pacing) {
                Err(error) if error.code == ErrorCode::TooLarge => {
                    let len = body.len() as u64;
                    (body, None, Some(len))
                }
                submission => return submission,
            }
        }
        IncomingBody::Partial { first, rest, len } => (first, Some(rest), len),
    };
    let idle_max = app.server.read_timeout;
    let (submission, expected) = match asked.into_submission(pacing) {
        Ok(ready) => ready,
        Err(error) => {
            if let Some(rest) = rest {
                body::discard(rest, idle_max).await;
            }
            return Err(error);
        }
    };
    expected.set_request_body(body::stream_body(first, rest, len, idle_max));
    Ok((submission, expected))
}

async fn submit_and_wait(
    app: SharedPartition,
    method: Method,
    submission: Submission,
    expected: ResponseWaiter,
    mut tell: oneshot::Sender<Response>,
) {
    let started = Instant::now();
    let unaware = app.server.pacing.hold_stop().await;
    let accepted = app.engine.submit(submission).await.map_err(Error::from);
    let response = match accepted {
        Ok(receipt) => {
            telemetry::record_accepted(started, receipt.deduplicated);
            let waiting = PendingResponse { app: &app, method, id: receipt.id, expected, started };
            tokio::select! {
                response = waiting.wait_for_response(unaware) => response,
                () = tell.closed() => return abandon(&app, receipt.id).await,
            }
        }
        Err(error) => {
            telemetry::record_refused(&error);
            match error.earliest {
                Some(earliest) => {
                    let (now, wait) = (app.server.clock.now(), app.server.pacing.config.wait);
                    response::too_late_response(earliest, now, wait)
                }
                None => response::submit_error_response(&method, error),
            }
        }
    };
    // The client may have disconnected.
    let _ = tell.send(response);
}

/// Cancels an operation whose client has disconnected.
async fn abandon(app: &SharedPartition, id: OperationId) {
    match app.engine.abandon(id).await {
        Ok(view) => tracing::debug!(operation_id = %id, state = %view.state, "the client disconnected"),
        // Its deadline ends it.
        Err(error) => {
            tracing::debug!(operation_id = %id, %error, "the client disconnected; its operation was not canceled");
        }
    }
}

fn stopping() -> Error {
    Error::new(ErrorCode::Stopping, "The server is shutting down; nothing was sent.")
}

fn stopping_after_send() -> Error {
    Error::new(ErrorCode::Stopping, "The server is shutting down. It was sent before, and is not sent again.")
}

struct PendingResponse<'a> {
    app: &'a SharedPartition,
    method: Method,
    id: OperationId,
    expected: ResponseWaiter,
    started: Instant,
}

impl PendingResponse<'_> {
    /// Waits for the end of the operation, or for the timeout. `unaware` delays a shutdown until
    /// this request has handled it.
    async fn wait_for_response<T>(self, unaware: T) -> Response {
        let server = &self.app.server;
        let (id, wait) = (self.id, server.pacing.config.wait);
        let end = self.started + wait;
        let mut unaware = Some(unaware);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let stops = async {
                server.stopping.cancelled().await;
            };
            let found = tokio::select! {
                found = self.app.engine.wait(id, left) => found,
                streaming = self.expected.wait_streaming() => {
                    return response::streamed_response(&self.method, id, streaming);
                }
                () = stops, if unaware.is_some() => {
                    let found = self.call_off().await;
                    unaware = None;
                    match &found {
                        Ok(view) if view.state != OperationState::Canceled => {}
                        Ok(view) if view.attempt == 0 => return response::refusal_response(stopping()),
                        Ok(_) => return response::failure_response(stopping_after_send(), id),
                        Err(_) => {}
                    }
                    found
                }
            };
            match found {
                Ok(view) if view.state.is_ended() => return self.ended_response(&view).await,
                Ok(_) if Instant::now() < end => {}
                Ok(_) => return self.timeout_response(wait.as_secs()).await,
                Err(error) => return self.lost_response(&error),
            }
        }
    }

    /// Cancels the operation because the server stops. Another node continues it, if there may be
    /// one; otherwise this process gives the last answer, and nothing is sent after that.
    async fn call_off(&self) -> tidegate::Result<OperationView> {
        match self.app.server.store.is_shared() {
            true => self.app.engine.withdraw(self.id).await,
            false => self.app.engine.abandon(self.id).await,
        }
    }

    async fn ended_response(&self, view: &OperationView) -> Response {
        // A response that arrived and ended at the same moment.
        if let Some(streaming) = self.expected.take_streaming() {
            return response::streamed_response(&self.method, view.id, streaming);
        }
        let fault = view.fault.as_ref();
        let is_throttled = fault.is_some_and(|fault| fault.class == FaultClass::RateLimited);
        let opens = if is_throttled { self.gate_opens(view).await } else { None };
        response::ended_response(&self.method, view, self.expected.take(), opens)
    }

    /// How long the gate of its upstream stays closed.
    async fn gate_opens(&self, view: &OperationView) -> Option<Duration> {
        let gate = self.app.engine.limit(view.upstream.as_deref()?).await.ok()?;
        Some(gate.frozen_until?.since(self.app.server.clock.now()))
    }

    /// The response when the time to wait is over: nothing more is sent after it.
    async fn timeout_response(&self, waited_s: u64) -> Response {
        let reason = self.app.engine.why(self.id).await.ok().filter(|why| why.waiting_for == "bucket");
        let starts_at = reason.and_then(|why| why.starts_at.or(why.until));
        match self.app.engine.abandon(self.id).await {
            Ok(view) if view.state == OperationState::Canceled => match starts_at {
                Some(at) => {
                    let after = at.since(self.app.server.clock.now());
                    response::limited_response(self.id, after, waited_s)
                }
                None => response::timeout_response(self.id, true, waited_s),
            },
            Ok(view) if view.state.is_ended() => self.ended_response(&view).await,
            _ => response::timeout_response(self.id, false, waited_s),
        }
    }

    /// The response when the engine has stopped. In a cluster the operation continues on another
    /// node.
    fn lost_response(&self, error: &tidegate::Error) -> Response {
        if self.app.server.store.is_shared() {
            return response::moved_response(self.id);
        }
        let message = format!("Its outcome is unknown: {}.", error.message);
        response::failure_response(Error::new(ErrorCode::NoAnswer, message), self.id)
    }
}
