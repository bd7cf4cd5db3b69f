//! The API as the pages of this process call it: the same handlers as for any other client, on any
//! store and from any node, after the guard has admitted the caller of the page. What a command
//! means is decided in one place, and a page shows what the API says.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::routing::MethodRouter;
use serde_json::Value;
use tidegate_core::bounds::PARTITION_RESPONSE_LEN_MAX;
use tidegate_upstream::request::json_text;
use tokio::time::timeout;
use tower::ServiceExt;

use super::route::{Route, RouteSpec};
use super::routes;
use crate::audit::{CommandReason, audited};
use crate::edge::auth::Caller;
use crate::edge::content::BodyTimeout;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;

/// How long a page waits for one thing that it shows.
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// The API of this process. It is never served to a listener.
#[derive(Clone)]
pub(crate) struct LocalApi {
    router: Router,
    pub server: Arc<ServerState>,
}

/// A command of an operator to the API.
#[derive(Clone, Debug)]
pub(crate) struct ApiCommand {
    pub method: Method,
    /// Path and query.
    pub target: String,
    pub body: Value,
}

impl LocalApi {
    /// The API of a node; `serve` attaches the state of the node to each route that it has.
    pub(crate) fn new(
        server: &Arc<ServerState>,
        serve: impl Fn(Route) -> Option<(RouteSpec, MethodRouter)>,
    ) -> Self {
        let served = routes::routes().into_iter().filter_map(serve);
        let router = served
            .fold(Router::new(), |router, (spec, call)| router.route(spec.path, audited(server, spec, call)));
        Self { router, server: Arc::clone(server) }
    }

    /// Reads something.
    pub(crate) async fn get(&self, target: &str) -> Result<Value> {
        let command = ApiCommand { method: Method::GET, target: target.to_owned(), body: Value::Null };
        answered_in_time(self.send(&Caller::named("page"), "", &command)).await?
    }

    /// Commands something, for a reason.
    pub(crate) async fn send(&self, caller: &Caller, reason: &str, command: &ApiCommand) -> Result<Value> {
        let body = match &command.body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        let request = Request::builder().method(command.method.clone()).uri(&command.target).body(body);
        let mut request = request.map_err(|error| {
            Error::new(ErrorCode::Malformed, format!("That is no address of the API: {error}."))
        })?;
        request.extensions_mut().insert(caller.clone());
        request.extensions_mut().insert(CommandReason(reason.into()));
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), PARTITION_RESPONSE_LEN_MAX).await;
        let json = body.ok().and_then(|body| json_text::read(&body)).unwrap_or_default();
        if status.is_success() { Ok(json) } else { Err(error_of(status, &json)) }
    }
}

/// Waits for what a page reads, for a bounded time: a store that hangs must not keep the rest of
/// the page away.
pub(crate) async fn answered_in_time<T>(reading: impl Future<Output = T>) -> Result<T> {
    let answer = timeout(READ_PATIENCE, reading).await;
    answer.map_err(|_| Error::new(ErrorCode::StoreUnavailable, "The store does not answer."))
}

impl BodyTimeout for LocalApi {
    fn body_timeout(&self) -> Duration {
        self.server.read_timeout
    }
}

/// The error in a response.
fn error_of(status: StatusCode, json: &Value) -> Error {
    let error = &json["error"];
    let code = ErrorCode::ALL.iter().find(|code| error["code"] == code.to_string().as_str());
    let code = code.copied().unwrap_or(ErrorCode::Internal);
    let message =
        error["message"].as_str().map_or_else(|| format!("It failed with {status}."), str::to_owned);
    Error::new(code, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A page says that the store hangs instead of hanging itself.
    #[tokio::test(start_paused = true)]
    async fn a_page_does_not_wait_for_ever() {
        let hanging = answered_in_time(std::future::pending::<()>()).await;
        assert_eq!(hanging.unwrap_err().code, ErrorCode::StoreUnavailable);
        assert_eq!(answered_in_time(async { 7 }).await.unwrap(), 7);
    }

    #[test]
    fn an_error_keeps_its_code_and_message() {
        let json = json!({ "error": { "code": "TG0013", "message": "Not now." } });
        let error = error_of(StatusCode::CONFLICT, &json);
        assert_eq!((error.code, &*error.message), (ErrorCode::NotNow, "Not now."));
        let other = error_of(StatusCode::BAD_GATEWAY, &Value::Null);
        assert_eq!((other.code, other.message.contains("502")), (ErrorCode::Internal, true));
    }
}
