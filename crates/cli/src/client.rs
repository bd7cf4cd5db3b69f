//! An HTTP client for a Tidegate server: JSON, one call at a time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Http, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;
use tidegate_upstream::http::{TlsConnector, tls_connector};

use crate::error::CliError;
use crate::output::text;
use crate::reply::ServerReply;

/// The longest response body that is read, in bytes.
const ANSWER_LEN_MAX: usize = 64 * 1024 * 1024;
/// The response timeout, on top of what the call itself asks the server to wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// The options that select the server and the token.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    /// The address of the server. Default: the variable TIDEGATE_SERVER, or http://127.0.0.1:7400.
    #[arg(
        long,
        global = true,
        default_value_t = default_server(),
        hide_default_value = true,
        value_name = "URL",
        help_heading = "Server"
    )]
    pub server: String,
    /// The environment variable that holds the token, if the server requires one.
    #[arg(
        long,
        global = true,
        default_value = "TIDEGATE_TOKEN",
        value_name = "NAME",
        help_heading = "Server"
    )]
    pub token_env: String,
}

/// Returns the address of the server when no option names one. clap is not told of the variable:
/// it would list the option as if it were required.
fn default_server() -> String {
    let named = std::env::var_os("TIDEGATE_SERVER").map(|named| named.to_string_lossy().into_owned());
    named.unwrap_or_else(|| "http://127.0.0.1:7400".to_owned())
}

/// The connections to a server. The certificates that the system trusts are only read for TLS.
#[derive(Clone, Debug)]
enum HttpClient {
    Plain(Http<HttpConnector, Full<Bytes>>),
    Tls(Http<TlsConnector, Full<Bytes>>),
}

impl HttpClient {
    fn new(base: &str) -> Result<Self, CliError> {
        let builder = Http::builder(TokioExecutor::new());
        let tcp = HttpConnector::new();
        if !base.starts_with("https://") {
            return Ok(Self::Plain(builder.build(tcp)));
        }
        let tls = tls_connector(tcp)
            .map_err(|error| CliError::new(format!("The system's certificates cannot be read: {error}.")))?;
        Ok(Self::Tls(builder.build(tls)))
    }

    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(http) => http.request(request),
            Self::Tls(http) => http.request(request),
        }
    }
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: HttpClient,
    base: String,
    authorization: Option<HeaderValue>,
}

/// Whether the same request would be refused again: being told to wait is no refusal.
fn is_refusal(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS
}

impl Client {
    pub(crate) fn new(args: &RemoteArgs) -> Result<Self, CliError> {
        let base = parse_base_url(&args.server)?;
        let token = std::env::var(&args.token_env).ok().filter(|token| !token.is_empty());
        let authorization = token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
                    CliError::usage(format!("HTTP does not allow the token in {}.", args.token_env))
                })?;
                value.set_sensitive(true);
                Ok::<_, CliError>(value)
            })
            .transpose()?;
        Ok(Self { http: HttpClient::new(&base)?, base, authorization })
    }

    pub(crate) async fn get(&self, path: &str, mark: &str) -> Result<Value, CliError> {
        self.call(Method::GET, path, None, Duration::ZERO, mark).await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        mark: &str,
    ) -> Result<Value, CliError> {
        self.call(Method::POST, path, Some(json(body)?), Duration::ZERO, mark).await
    }

    /// As `post`, under an idempotency key: sent again with the same key, nothing happens twice.
    pub(crate) async fn post_with_key(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
        mark: &str,
    ) -> Result<Value, CliError> {
        let mut request = self.request(Method::POST, path, json(body)?)?;
        let value = HeaderValue::from_str(key)
            .map_err(|_| CliError::usage(format!("HTTP does not allow the key {key:?}.")))?;
        request.headers_mut().insert("idempotency-key", value);
        let answer = tokio::time::timeout(PATIENCE, self.send(request, mark)).await;
        Ok(answer.unwrap_or_else(|_| Err(self.silent_error(PATIENCE)))?.value)
    }

    pub(crate) async fn patch(
        &self,
        path: &str,
        body: &impl Serialize,
        mark: &str,
    ) -> Result<Value, CliError> {
        self.call(Method::PATCH, path, Some(json(body)?), Duration::ZERO, mark).await
    }

    pub(crate) async fn put(&self, path: &str, body: &impl Serialize, mark: &str) -> Result<Value, CliError> {
        self.call(Method::PUT, path, Some(json(body)?), Duration::ZERO, mark).await
    }

    /// Sends one request and returns the JSON response. `wait` is how long the server was asked to
    /// wait. `mark` is a field that Tidegate's response always has, which tells it from other
    /// servers.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
        mark: &str,
    ) -> Result<Value, CliError> {
        Ok(self.call_for_reply(method, path, body, wait, mark).await?.value)
    }

    /// As `call`, with the response as it was sent.
    pub(crate) async fn call_for_reply(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
        mark: &str,
    ) -> Result<ServerReply, CliError> {
        let request = self.request(method, path, body.unwrap_or_default())?;
        let patience = PATIENCE + wait;
        let answer = tokio::time::timeout(patience, self.send(request, mark)).await;
        answer.unwrap_or_else(|_| Err(self.silent_error(patience)))
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, CliError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| CliError::usage(format!("{}{path} is not a valid URL: {error}.", self.base)))
    }

    fn silent_error(&self, patience: Duration) -> CliError {
        CliError::new(format!("{} did not respond within {} s.", self.base, patience.as_secs()))
    }

    /// Sends one request and returns the body of the response as it is.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<Bytes, CliError> {
        let request = self.request(method, path, body)?;
        let (status, body) = tokio::time::timeout(PATIENCE + wait, self.receive(request))
            .await
            .unwrap_or_else(|_| Err(self.silent_error(PATIENCE + wait)))?;
        match status.is_success() {
            true => Ok(body),
            false => {
                let value = serde_json::from_slice::<Value>(&body).unwrap_or_default();
                Err(match value["error"]["code"].is_string() {
                    true => server_error(&value, status.as_u16()).refused(is_refusal(status)),
                    false => self.not_tidegate(status, &value),
                })
            }
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>, mark: &str) -> Result<ServerReply, CliError> {
        let (status, body) = self.receive(request).await?;
        let reply = ServerReply::parse(&body);
        let value = &reply.value;
        match status.is_success() {
            true if value.get(mark).is_some() => Ok(reply),
            false if value["error"]["code"].is_string() => Err(server_error(value, status.as_u16())),
            _ => Err(self.not_tidegate(status, value)),
        }
    }

    async fn receive(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), CliError> {
        let answer = self.http.request(request).await.map_err(|error| self.unreachable_error(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_LEN_MAX)
            .collect()
            .await
            .map_err(|error| CliError::new(format!("The response of {} was cut off: {error}.", self.base)))?;
        Ok((status, body.to_bytes()))
    }

    /// The error when something other than Tidegate responds.
    fn not_tidegate(&self, status: StatusCode, value: &Value) -> CliError {
        let what = if value.is_null() { "a body that is not JSON" } else { "JSON that is not Tidegate's" };
        CliError::new(format!("{} is not a Tidegate server: it returned {status} with {what}.", self.base))
            .hint("set --server / TIDEGATE_SERVER to the address that `tidegate serve` printed")
    }

    fn unreachable_error(&self, error: &hyper_util::client::legacy::Error) -> CliError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        CliError::new(format!("cannot reach a server at {} ({cause})", self.base))
            .hint("start it with `tidegate serve`, or set --server / TIDEGATE_SERVER")
    }
}

/// Parses the base URL of the server.
fn parse_base_url(server: &str) -> Result<String, CliError> {
    let base = server.trim_end_matches('/');
    match base.split_once("://") {
        Some(("http" | "https", host)) if !host.is_empty() => Ok(base.to_owned()),
        _ => {
            let message =
                format!("{base:?} is not a valid server address: it must be http:// or https:// and a host.");
            Err(CliError::usage(message).hint("for example http://127.0.0.1:7400"))
        }
    }
}

fn server_error(value: &Value, status: u16) -> CliError {
    let error = &value["error"];
    let message = error["message"].as_str().unwrap_or("The server gave no reason.");
    let detail = &error["detail"];
    let mut trouble = CliError::new(message).code(text(error, "code")).reported(error.clone());
    // Most messages name the field already.
    if let Some(field) = detail["field"].as_str().filter(|field| *field != "id" && !message.contains(field)) {
        trouble = trouble.hint(format!("the field is {field}"));
    }
    if let Some(operation) = detail["operation"].as_str() {
        trouble = trouble.hint(format!("show it with `tidegate op show {operation}`"));
    }
    for one in detail["candidates"].as_array().into_iter().flatten() {
        let (scope, method, path) = (text(one, "scope"), text(one, "method"), text(one, "path"));
        trouble = trouble.hint(format!("one of them: --scope {scope} --method {method} --path {path}"));
    }
    if let Some(deployment) = detail["deployment"].as_str().filter(|id| !message.contains(id)) {
        trouble = trouble.hint(format!("the deployment is {deployment}"));
    }
    if let Some(earliest) = detail["earliest"].as_str() {
        trouble = trouble.hint(format!("it could start at {earliest} at the earliest"));
    }
    for problem in error["problems"].as_array().into_iter().flatten().skip(1) {
        trouble = trouble.hint(format!("another problem: {}", text(problem, "message")));
    }
    match status {
        401 => trouble.hint("set TIDEGATE_TOKEN, or name another variable with --token-env"),
        _ => trouble,
    }
}

pub(crate) fn json(body: &impl Serialize) -> Result<Bytes, CliError> {
    let bytes = serde_json::to_vec(body).map(Bytes::from);
    bytes.map_err(|error| CliError::new(format!("The request cannot be serialized as JSON: {error}.")))
}

/// Percent-encodes a name as one path segment.
pub(crate) fn encode_segment(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// Builds a query string from the pairs that have a value, with its question mark.
pub(crate) fn query(pairs: &[(&str, Option<String>)]) -> String {
    let pairs = pairs
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", encode_segment(value.as_deref()?))));
    let joined = pairs.collect::<Vec<_>>().join("&");
    if joined.is_empty() { joined } else { format!("?{joined}") }
}
