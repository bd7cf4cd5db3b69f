//! What the simulator asks of one provider's API: read a request, write a response. Jobs, limits
//! and faults are the same for all of them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;
use tidegate_core::Time;

use super::jobs::{Job, JobState, NewJob};
use super::signature::WebhookSigner;

/// A request that was read.
#[derive(Debug)]
pub enum ProviderCall {
    /// Submit a job.
    Submit(Box<NewJob>),
    /// Return the state of a job.
    Status(String),
    /// Return the result of a job.
    Result(String),
    /// Cancel a job.
    Cancel(String),
    /// List jobs that were created in this period, the newest first.
    List {
        /// After this time.
        after: Option<String>,
        /// Before this time.
        before: Option<String>,
    },
    /// Return what is needed to verify webhooks.
    WebhookKey,
}

/// A request that was refused before it had any effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// There is no credential, or not in the right form.
    Unauthenticated,
    /// The credential is not accepted.
    WrongKey,
    /// There is nothing at this path.
    NotFound,
    /// The input lacks this field.
    Missing(&'static str),
    /// The body is not the JSON it should be.
    NotJson,
    /// So many jobs run that this one cannot.
    Busy,
    /// Too many calls; try again after this time.
    Throttled(Duration),
    /// The provider failed, without effect.
    Failed,
}

/// A job and where it is shown.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The job.
    pub job: &'a Job,
    /// How many jobs wait before it.
    pub position: usize,
    /// The simulator's base URL.
    pub base: &'a str,
    /// What its picture is drawn from.
    pub seed: u64,
}

impl JobView<'_> {
    /// The URL of its picture.
    #[must_use]
    pub fn picture_url(&self) -> String {
        format!("{}/_files/{}.png", self.base, self.job.number)
    }
}

/// One provider's API.
pub trait ProviderApi: fmt::Debug + Send + Sync + 'static {
    /// Reads a request.
    ///
    /// # Errors
    /// When the provider refuses it whatever its limits are.
    fn read(&self, request: &Request<Bytes>) -> Result<ProviderCall, ProviderRefusal>;

    /// Writes a refusal.
    fn refused(&self, refusal: &ProviderRefusal) -> Response<Bytes>;

    /// Responds to a submit.
    fn accepted(&self, view: &JobView<'_>) -> Response<Bytes>;

    /// Returns the state of a job.
    fn status(&self, view: &JobView<'_>) -> Response<Bytes>;

    /// Returns the result of a job.
    fn result(&self, view: &JobView<'_>) -> Response<Bytes>;

    /// Responds to a cancel; `before` is the state that the job had.
    fn canceled(&self, view: &JobView<'_>, before: JobState) -> Response<Bytes>;

    /// Whether a running job can be canceled.
    fn cancels_running(&self) -> bool {
        true
    }

    /// Lists jobs.
    fn listed(&self, views: &[JobView<'_>]) -> Response<Bytes> {
        let _ = views;
        self.refused(&ProviderRefusal::NotFound)
    }

    /// Returns what is needed to verify webhooks.
    fn webhook_key(&self, signer: &WebhookSigner) -> Response<Bytes> {
        let _ = signer;
        self.refused(&ProviderRefusal::NotFound)
    }

    /// Creates an id for a job from a random number.
    fn job_id(&self, spec: &NewJob, random: u128) -> String;

    /// Returns the body of the webhook that reports the end of a job, if this end is reported.
    fn webhook(&self, view: &JobView<'_>) -> Option<Value>;

    /// Signs a webhook.
    fn sign(&self, signer: &WebhookSigner, id: &str, body: &[u8], at: Time)
    -> Vec<(HeaderName, HeaderValue)>;

    /// How long pictures are kept.
    fn keeps_pictures(&self) -> Duration;
}

/// Formats a random number as a UUID of version 4.
#[must_use]
pub fn uuid(random: u128) -> String {
    let hex = format!("{random:032x}");
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Reads a JSON object.
///
/// # Errors
/// When the body is none.
pub fn object(body: &Bytes) -> Result<Value, ProviderRefusal> {
    serde_json::from_slice(body).ok().filter(Value::is_object).ok_or(ProviderRefusal::NotJson)
}

/// Returns the text at a pointer, or an empty one.
#[must_use]
pub fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether the `Authorization` header has this scheme and a credential.
#[must_use]
pub fn is_authorized(request: &Request<Bytes>, scheme: &str) -> bool {
    let value = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let credential = value.and_then(|value| value.strip_prefix(scheme)).unwrap_or_default();
    credential.starts_with(' ') && credential.len() > 1
}

/// Returns a parameter of the query, decoded.
#[must_use]
pub fn parameter(request: &Request<Bytes>, name: &str) -> Option<String> {
    let query = request.uri().query()?;
    let value = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    let value = value.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&value).decode_utf8_lossy().into_owned())
}

/// Creates a response with one more header.
#[must_use]
pub fn with_header(mut response: Response<Bytes>, name: &'static str, value: &str) -> Response<Bytes> {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Creates a JSON response.
#[must_use]
pub fn respond(status: u16, body: &Value) -> Response<Bytes> {
    crate::server::json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), body)
}

/// Rounds a wait up to whole seconds, at least one.
#[must_use]
pub fn seconds_up(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}
