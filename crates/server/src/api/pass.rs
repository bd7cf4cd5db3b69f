//! `/proxy/{upstream}/…`: hands in a client's request, waits for its end and gives the upstream's answer back. Whoever
//! goes away leaves nothing in the line; what is under way goes on.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error, Result, Submission, View};
use tidegate_core::{OperationId, State as OperationState};
use tidegate_upstream::http::Expected;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::app::Shared;
use crate::edge::content::{self, Arriving};
use crate::edge::request_id::RequestId;
use crate::pacing::request::{Asked, BODY_MAX, end_to_end};
use crate::pacing::{answer, body};
use crate::telemetry;
use crate::wire::failure::Failure;

pub(super) async fn on(
    State(app): State<Shared>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    request: Request,
) -> Response {
    if app.house.stopping.is_cancelled() {
        return answer::refused(stopping());
    }
    let (parts, body) = request.into_parts();
    let arriving = match content::begin(body, BODY_MAX, app.house.read_timeout).await {
        Ok(arriving) => arriving,
        Err(error) => return answer::refused(error),
    };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let headers = end_to_end(parts.headers, !app.house.tokens.is_empty());
    let asked = Asked { method: &parts.method, target, headers, body: None, request_id };
    let (submission, expected) = match accepted_as(&app, asked, arriving).await {
        Ok(ready) => ready,
        Err(error) => {
            telemetry::refused(&error);
            return answer::refused(error);
        }
    };
    let method = parts.method;
    let (tell, told) = oneshot::channel();
    // On its own, so that it knows its operation also when the client goes away right now.
    tokio::spawn(carry(app, method, submission, expected, tell));
    told.await.unwrap_or_else(|_| {
        Failure(Error::new(Code::Internal, "The call was dropped; this is a bug.")).into_response()
    })
}

/// The operation of a request. Its body is kept with it, or passed on while it comes when it is too large for that.
async fn accepted_as(app: &Shared, asked: Asked<'_>, arriving: Arriving) -> Result<(Submission, Expected)> {
    let pacing = &app.house.pacing;
    let (first, rest, len) = match arriving {
        Arriving::Whole(body) => {
            match (Asked { body: Some(body.clone()), ..asked.clone() }).submission(pacing) {
                Err(error) if error.code == Code::TooLarge => {
                    let len = body.len() as u64;
                    (body, None, Some(len))
                }
                submission => return submission,
            }
        }
        Arriving::Longer { first, rest, len } => (first, Some(rest), len),
    };
    let idle_max = app.house.read_timeout;
    let (submission, expected) = match asked.submission(pacing) {
        Ok(ready) => ready,
        Err(error) => {
            if let Some(rest) = rest {
                body::throw_away(rest, idle_max).await;
            }
            return Err(error);
        }
    };
    expected.send(body::streamed(first, rest, len, idle_max));
    Ok((submission, expected))
}

async fn carry(
    app: Shared,
    method: Method,
    submission: Submission,
    expected: Expected,
    mut tell: oneshot::Sender<Response>,
) {
    let started = Instant::now();
    let unaware = app.house.pacing.unaware().await;
    let accepted = app.engine.submit(submission).await;
    let response = match accepted {
        Ok(receipt) => {
            telemetry::accepted(started, receipt.deduplicated);
            let waiting = Waiting { app: &app, method, id: receipt.id, expected, started };
            tokio::select! {
                response = waiting.answer(unaware) => response,
                () = tell.closed() => return gone(&app, receipt.id).await,
            }
        }
        Err(error) => {
            telemetry::refused(&error);
            answer::not_accepted(&method, error)
        }
    };
    // The client may have gone in this moment.
    let _ = tell.send(response);
}

/// Nobody waits any more.
async fn gone(app: &Shared, id: OperationId) {
    match app.engine.withdraw(id).await {
        Ok(view) => tracing::debug!(operation_id = %id, state = %view.state, "the client has gone"),
        // Its deadline ends it.
        Err(error) => {
            tracing::debug!(operation_id = %id, %error, "the client has gone; it was not called off");
        }
    }
}

fn stopping() -> Error {
    Error::new(Code::Stopping, "The server is about to stop; nothing was sent.")
}

fn sent_before() -> Error {
    Error::new(Code::Stopping, "The server is about to stop. It was sent before, and is not sent again.")
}

struct Waiting<'a> {
    app: &'a Shared,
    method: Method,
    id: OperationId,
    expected: Expected,
    started: Instant,
}

impl Waiting<'_> {
    /// The end of the operation, or of the time. `unaware` holds a stop up until this one has acted on it.
    async fn answer<T>(self, unaware: T) -> Response {
        let house = &self.app.house;
        let (id, wait) = (self.id, house.pacing.config.wait);
        let end = self.started + wait;
        let mut unaware = Some(unaware);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let stops = async {
                house.stopping.cancelled().await;
            };
            let found = tokio::select! {
                found = self.app.engine.wait(id, left) => found,
                streaming = self.expected.streaming() => {
                    return answer::streamed(&self.method, id, streaming);
                }
                () = stops, if unaware.is_some() => {
                    let found = self.app.engine.withdraw(id).await;
                    unaware = None;
                    match &found {
                        Ok(view) if view.state != OperationState::Canceled => {}
                        Ok(view) if view.attempt == 0 => return answer::refused(stopping()),
                        Ok(_) => return answer::failed(sent_before(), id),
                        Err(_) => {}
                    }
                    found
                }
            };
            match found {
                Ok(view) if view.state.is_ended() => return self.ended(&view),
                Ok(_) if Instant::now() < end => {}
                Ok(_) => return self.late(self.app.engine.withdraw(id).await, wait.as_secs()),
                Err(error) => return self.lost(&error),
            }
        }
    }

    fn ended(&self, view: &View) -> Response {
        // One that came and ended in the same moment.
        if let Some(streaming) = self.expected.take_streaming() {
            return answer::streamed(&self.method, view.id, streaming);
        }
        answer::ended(&self.method, view, self.expected.take())
    }

    fn late(&self, withdrawn: Result<View>, waited_s: u64) -> Response {
        match withdrawn {
            Ok(view) if view.state == OperationState::Canceled => answer::late(self.id, true, waited_s),
            Ok(view) if view.state.is_ended() => self.ended(&view),
            _ => answer::late(self.id, false, waited_s),
        }
    }

    /// The engine has stopped. What many nodes share goes on in another one.
    fn lost(&self, error: &Error) -> Response {
        if self.app.house.store.is_shared() {
            return answer::moved(self.id);
        }
        let message = format!("What became of it is not known: {}.", error.message);
        answer::failed(Error::new(Code::NoAnswer, message), self.id)
    }
}
