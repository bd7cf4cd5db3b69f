//! Finds the completion token of a request: in a header of its own, or in the query, for services
//! that call a URL and can send nothing else along.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use tidegate_core::OperationId;
use tidegate_upstream::request::completion::TOKEN_HEADER;

use super::auth::Caller;
use super::query::Query;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;

/// The longest token that is checked, in bytes.
const LEN_MAX: usize = 256;
/// The name of callers that were admitted because of their token.
pub(crate) const CALLER: &str = "completion token";
/// The parameter of the query.
const PARAMETER: &str = "token";

/// The completion token of a request; `None` when it has none.
pub(crate) fn find(head: &Parts) -> Option<String> {
    in_header(&head.headers).or_else(|| Query::parse(head.uri.query().unwrap_or_default()).take(PARAMETER))
}

/// Admits a caller whose token is one of the operation in the path, before a byte of the body is
/// read: a forged token costs this server nothing, not even memory.
pub(crate) fn admit(server: &ServerState, head: &Parts) -> Result<Caller> {
    let id = head.uri.path().split('/').find_map(|segment| segment.parse::<OperationId>().ok());
    let is_valid = find(head)
        .zip(id)
        .zip(server.completion_key.get())
        .is_some_and(|((token, id), key)| key.is_valid(id, &token));
    let refuse = || Error::new(ErrorCode::Unauthorized, "The completion token is not valid.");
    is_valid.then(|| Caller::named(CALLER)).ok_or_else(refuse)
}

/// Refuses unknown parameters, unless there is a token: a service may add its own to a URL that it
/// was given.
pub(crate) fn check_query(head: &Parts) -> Result<()> {
    if find(head).is_some() {
        return Ok(());
    }
    let mut query = Query::parse(head.uri.query().unwrap_or_default());
    query.take(PARAMETER);
    query.finish()
}

/// An empty one is none, as in the query: whoever sends it needs the scope.
fn in_header(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TOKEN_HEADER)?.to_str().ok().filter(|text| !text.is_empty())?;
    Some(text.chars().take(LEN_MAX).collect())
}

/// The target of a request with its token in the query, so that it reaches the partition wherever
/// that is.
pub(crate) fn target_with_token(head: &Parts) -> String {
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    match in_header(&head.headers) {
        Some(token) => {
            let token = percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
            format!("{}?{PARAMETER}={token}", head.uri.path())
        }
        None => target.to_owned(),
    }
}
