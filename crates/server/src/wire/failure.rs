//! An error as an answer: the status that fits its code, and
//! `{"error":{"code","title","message","field","detail","problems","link"}}`.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use tidegate::{Code, Error};

use super::object::shown;
use super::time::At;

/// When a caller may try again after the store could not be written.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// The code, where a client of the proxy looks for it: an upstream's own failure has none.
pub(crate) const ERROR: HeaderName = HeaderName::from_static("x-tidegate-error");

/// What a handler fails with.
#[derive(Debug)]
pub(crate) struct Failure(pub Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

#[derive(Serialize)]
pub(crate) struct Wrapped {
    pub error: ErrorBody,
}

#[derive(Serialize)]
pub(crate) struct ErrorBody {
    code: String,
    /// What kind of problem it is; the same for all of its code.
    title: &'static str,
    message: String,
    field: Option<String>,
    detail: Detail,
    /// Everything that is wrong with the request; the first is the error itself.
    problems: Vec<ProblemOut>,
    /// Where its page is, on this server.
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
        Self { code: error.code.to_string(), field: error.field.clone(), message: error.message.clone() }
    }
}

/// Where the page of a code is.
pub(crate) const PAGES: &str = "/docs/errors";

#[derive(Default, Serialize)]
struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest: Option<At>,
    #[serde(flatten)]
    about: About,
}

/// More of what a failure is about.
#[derive(Default, Serialize)]
pub(crate) struct About {
    /// What it may be about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Value>,
    /// Everything that is wrong with a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Value>,
    /// The deployment that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
}

impl From<Error> for Wrapped {
    fn from(error: Error) -> Self {
        let problems = std::iter::once(&error).chain(&error.also).map(ProblemOut::new).collect();
        let Error { code, message, field, operation, earliest, .. } = error;
        let detail = Detail {
            field: field.clone(),
            operation: operation.map(|id| id.to_string()),
            earliest: earliest.map(At),
            about: About::default(),
        };
        let (code, title, link) = (code.to_string(), code.title(), format!("{PAGES}/{code}"));
        Self { error: ErrorBody { code, title, message, field, detail, problems, link } }
    }
}

pub(crate) const fn status(code: Code) -> StatusCode {
    match code {
        Code::Malformed | Code::Invalid | Code::BadCursor => StatusCode::BAD_REQUEST,
        Code::UnknownUpstream
        | Code::UnknownKind
        | Code::TooCostly
        | Code::UnknownLimit
        | Code::TooLate
        | Code::BadTemplate => StatusCode::UNPROCESSABLE_ENTITY,
        Code::TooLarge | Code::BatchTooLong => StatusCode::PAYLOAD_TOO_LARGE,
        Code::KeyConflict | Code::NotNow | Code::KeyNotUnique => StatusCode::CONFLICT,
        Code::NoOperation
        | Code::NoGroup
        | Code::NoLimit
        | Code::NoRoute
        | Code::NoKey
        | Code::NoDeployment => StatusCode::NOT_FOUND,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::StoreUnavailable | Code::Stopping | Code::StoreRefused => StatusCode::SERVICE_UNAVAILABLE,
        Code::BadConfig | Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::NotInTime => StatusCode::GATEWAY_TIMEOUT,
        Code::NoAnswer => StatusCode::BAD_GATEWAY,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let code = self.0.code;
        told(code, self.0.into())
    }
}

/// A failure that may be about any of several things, which are told with it.
pub(crate) fn among(error: Error, candidates: Value) -> Response {
    about(error, About { candidates: Some(candidates), ..About::default() })
}

/// A failure with more of what it is about.
pub(crate) fn about(error: Error, about: About) -> Response {
    let code = error.code;
    let mut wrapped = Wrapped::from(error);
    wrapped.error.detail.about = about;
    told(code, wrapped)
}

fn told(code: Code, wrapped: Wrapped) -> Response {
    metrics::counter!("tidegate_requests_refused_total", "code" => code.to_string()).increment(1);
    let mut response = (status(code), Json(wrapped)).into_response();
    if status(code) == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
    }
    if let Ok(code) = HeaderValue::from_str(&code.to_string()) {
        response.headers_mut().insert(ERROR, code);
    }
    // For whoever passes the answer on within this process.
    response.extensions_mut().insert(code);
    if code == Code::Unauthorized {
        for way in ["Bearer realm=\"tidegate\"", "Basic realm=\"tidegate\""] {
            response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(way));
        }
    }
    response
}

/// There is such a page, but not with this method.
pub(crate) fn wrong_method(method: &Method) -> Response {
    let error = Error::new(Code::NoRoute, format!("This page does not take {}.", shown(method.as_str())));
    let mut response = Failure(error).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}
