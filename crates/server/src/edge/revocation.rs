//! Ends streams when the token of their caller is revoked or expires. Any other request is short:
//! its caller is admitted once.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::StreamExt;

use super::auth::Caller;
use crate::state::ServerState;

/// How often the token of an open stream is looked at.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// The content type of a stream of events.
const EVENTS: &[u8] = b"text/event-stream";

/// Lets a stream of events end with the token of its caller.
pub(super) fn end_with_token(server: &Arc<ServerState>, caller: &Caller, response: Response) -> Response {
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_stream = content_type.is_some_and(|value| value.as_bytes().starts_with(EVENTS));
    if !is_stream || !server.tokens.are_required() {
        return response;
    }
    let (server, Caller(name)) = (Arc::clone(server), caller.clone());
    let invalid = async move {
        while server.tokens.is_valid(&name, server.clock.now()) {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(invalid))))
}
