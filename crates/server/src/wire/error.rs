//! The response of an error: the status of its code, and
//! `{"error":{"code","title","message","field","detail","problems","link"}}`.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use super::object::truncate_name;
use super::time::Timestamp;
use crate::config::TokenScope;
use crate::error::{Error, ErrorCode, sentence};

/// When a caller may retry after the store could not be written.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// The header with the code, for clients of the proxy: an upstream's own error does not have it.
pub(crate) const ERROR: HeaderName = HeaderName::from_static("x-tidegate-error");

/// The error of a handler.
#[derive(Debug)]
pub(crate) struct ApiError(pub Error);

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<tidegate::Error> for ApiError {
    fn from(error: tidegate::Error) -> Self {
        Self(error.into())
    }
}

#[derive(Serialize)]
pub(crate) struct ErrorEnvelope {
    pub error: ErrorBody,
}

#[derive(Serialize)]
pub(crate) struct ErrorBody {
    code: String,
    /// The kind of problem; the same for all errors of its code.
    title: &'static str,
    message: String,
    field: Option<String>,
    detail: ErrorDetail,
    /// All problems of the request; the first is the error itself.
    problems: Vec<ProblemOut>,
    /// The path of its page on this server.
    link: String,
}

#[derive(Serialize)]
struct ProblemOut {
    code: String,
    field: Option<String>,
    message: String,
}

impl ProblemOut {
    fn new(error: &Error) -> Self {
        Self {
            code: error.code.to_string(),
            field: error.field.as_deref().map(str::to_owned),
            message: as_sentence(&error.message),
        }
    }
}

/// A message as a sentence: those of the engine and of stores begin in the middle of one. One that
/// has a full stop is a sentence already, even if it begins with a name.
fn as_sentence(message: &str) -> String {
    let is_sentence = message.ends_with('.') || !message.starts_with(char::is_lowercase);
    if is_sentence { message.to_owned() } else { sentence(message) }
}

/// The path of the pages about codes.
pub(crate) const PAGES: &str = "/docs/errors";

#[derive(Default, Serialize)]
struct ErrorDetail {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(flatten)]
    about: ErrorContext,
}

/// Additional details of an error.
#[derive(Default, Serialize)]
pub(crate) struct ErrorContext {
    /// The things it may refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Value>,
    /// All problems of a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Value>,
    /// The conflicting deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
}

impl From<Error> for ErrorEnvelope {
    fn from(error: Error) -> Self {
        let problems = std::iter::once(&error).chain(&error.also).map(ProblemOut::new).collect();
        let Error { code, message, field, operation, earliest, scope, .. } = error;
        let field = field.map(String::from);
        let detail = ErrorDetail {
            field: field.clone(),
            operation: operation.map(|id| id.to_string()),
            earliest: earliest.map(Timestamp),
            scope: scope.map(TokenScope::as_str),
            about: ErrorContext::default(),
        };
        let (code, title, link) = (code.to_string(), code.title(), format!("{PAGES}/{code}"));
        let message = as_sentence(&message);
        Self { error: ErrorBody { code, title, message, field, detail, problems, link } }
    }
}

pub(crate) const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Malformed | ErrorCode::Invalid | ErrorCode::BadCursor => StatusCode::BAD_REQUEST,
        ErrorCode::UnknownUpstream
        | ErrorCode::UnknownKind
        | ErrorCode::TooCostly
        | ErrorCode::UnknownLimit
        | ErrorCode::TooLate
        | ErrorCode::BadTemplate
        | ErrorCode::UnknownModel
        | ErrorCode::BadInput => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::TooLarge | ErrorCode::BatchTooLong => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::KeyConflict | ErrorCode::NotNow | ErrorCode::KeyNotUnique => StatusCode::CONFLICT,
        ErrorCode::NoOperation
        | ErrorCode::NoGroup
        | ErrorCode::NoLimit
        | ErrorCode::NoRoute
        | ErrorCode::NoKey
        | ErrorCode::NoDeployment
        | ErrorCode::NoProvider
        | ErrorCode::NoResult => StatusCode::NOT_FOUND,
        ErrorCode::TooManyGenerations => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::StoreUnavailable | ErrorCode::Stopping | ErrorCode::StoreRefused => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::NotInTime => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::NoAnswer => StatusCode::BAD_GATEWAY,
        // `BadConfig` and `Internal`; a test holds that no other code comes here.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (code, retry_after) = (self.0.code, self.0.retry_after_s);
        let mut response = error_response(code, self.0.into());
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.get().into());
        }
        response
    }
}

/// The response of an error that may refer to several things, which it lists.
pub(crate) fn ambiguous_response(error: Error, candidates: Value) -> Response {
    response_with_context(error, ErrorContext { candidates: Some(candidates), ..ErrorContext::default() })
}

/// The response of an error with additional details.
pub(crate) fn response_with_context(error: Error, about: ErrorContext) -> Response {
    let code = error.code;
    let mut wrapped = ErrorEnvelope::from(error);
    wrapped.error.detail.about = about;
    error_response(code, wrapped)
}

fn error_response(code: ErrorCode, wrapped: ErrorEnvelope) -> Response {
    metrics::counter!("tidegate_requests_refused_total", "code" => code.to_string()).increment(1);
    let mut response = (status(code), Json(wrapped)).into_response();
    if status(code) == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
    }
    if let Ok(code) = HeaderValue::from_str(&code.to_string()) {
        response.headers_mut().insert(ERROR, code);
    }
    // For layers of this process that see the response.
    response.extensions_mut().insert(code);
    if code == ErrorCode::Unauthorized {
        for way in ["Bearer realm=\"tidegate\"", "Basic realm=\"tidegate\""] {
            response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(way));
        }
    }
    response
}

/// The response when the path exists, but not with this method.
pub(crate) fn wrong_method(method: &Method) -> Response {
    let error = Error::new(
        ErrorCode::NoRoute,
        format!("This path does not support {}.", truncate_name(method.as_str())),
    );
    let mut response = ApiError(error).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that is forgotten in `status` would look like a bug of the server.
    #[test]
    fn every_code_has_a_status_of_its_own() {
        let unknown = |code: &ErrorCode| status(*code) == StatusCode::INTERNAL_SERVER_ERROR;
        let found: Vec<_> = ErrorCode::ALL.into_iter().filter(unknown).collect();
        assert_eq!(found, [ErrorCode::BadConfig, ErrorCode::Internal]);
    }
}
