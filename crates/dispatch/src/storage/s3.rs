//! A storage in a bucket of S3, or of a service that speaks its protocol: one PUT or GET for each
//! file, signed with Signature Version 4. Both may be repeated, and are after a failure that may
//! pass. Redirects are not followed.

mod config;
mod error_response;
mod signature;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use tidegate_core::Time;
use tidegate_core::bounds::RESULT_FILE_LEN_MAX;
use tidegate_store::Clock;
use tidegate_upstream::http::response::{Content, UpstreamResponse};
use tidegate_upstream::http::send::Sender;
use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::{Call, FieldRefusal, HttpRequest, Method, UpstreamConfig};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{
    ResultStorage, StorageError, StorageFuture, StoredFile, content_type, validate_file, validate_key,
};
pub use config::{S3Addressing, S3Config};
use error_response::ErrorResponse;
use signature::{SignedParts, SigningCredential, format_timestamp, sha256_hex};

/// How often a request is sent.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt; it doubles with each further one.
const BACKOFF: Duration = Duration::from_millis(250);
/// How long one attempt may take in total: the largest file at 1 MiB/s.
const TIMEOUT: Duration = Duration::from_secs(64);

/// Stores files as objects of a bucket.
pub struct S3Storage {
    credential: SigningCredential,
    base: BaseUrl,
    /// The `Host` of requests, which signatures cover.
    host: String,
    sender: Sender,
    clock: Arc<dyn Clock>,
    backoff: Duration,
}

/// The content of a request.
#[derive(Clone)]
struct ObjectContent {
    content_type: Option<String>,
    bytes: Bytes,
    sha256: String,
}

impl S3Storage {
    /// Validates the configuration; opens no connection. Signatures have the time of the clock,
    /// which must be within 15 minutes of the service's.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn new(config: &S3Config, clock: Arc<dyn Clock>) -> Result<Self, FieldRefusal> {
        Self::with_times(config, clock, TIMEOUT, BACKOFF)
    }

    fn with_times(
        config: &S3Config,
        clock: Arc<dyn Clock>,
        timeout: Duration,
        backoff: Duration,
    ) -> Result<Self, FieldRefusal> {
        let base_url = config.base_url()?;
        let refuse = |problem: String| FieldRefusal::new("endpoint", problem);
        let base = BaseUrl::parse(&base_url).map_err(refuse)?;
        let (_, host) = base.origin().map_err(refuse)?;
        let host = host.to_str().map_err(|_| refuse("Its host is not readable.".into()))?.to_owned();
        let upstream = UpstreamConfig::new("s3", base_url)
            .with_timeout(timeout)
            .with_response_max_bytes(RESULT_FILE_LEN_MAX);
        let sender = Sender::new(&upstream).map_err(|refusal| refuse(refusal.message))?;
        let credential = SigningCredential {
            access_key_id: config.access_key_id.clone(),
            secret_access_key: config.secret_access_key.clone(),
            region: config.region.clone(),
        };
        Ok(Self { credential, base, host, sender, clock, backoff })
    }

    /// Builds a signed request. A key needs no percent-encoding.
    fn sign(&self, method: Method, key: &str, content: ObjectContent, at: Time) -> HttpRequest {
        let ObjectContent { content_type, bytes, sha256 } = content;
        let timestamp = format_timestamp(at);
        let path = format!("{}/{key}", self.base.path());
        let own = [
            ("host", self.host.as_str()),
            ("x-amz-content-sha256", sha256.as_str()),
            ("x-amz-date", timestamp.as_str()),
        ];
        let typed = content_type.as_deref().map(|kind| ("content-type", kind));
        let headers: Vec<_> = typed.into_iter().chain(own).collect();
        let parts =
            SignedParts { method: method.as_str(), path: &path, headers: &headers, content_sha256: &sha256 };
        let authorization = self.credential.authorize(&parts, at);
        // The host is the connection's own.
        let sent = headers.iter().filter(|(name, _)| *name != "host");
        let request = sent.fold(HttpRequest::new(method, format!("/{key}")), |request, (name, value)| {
            request.with_header(*name, *value)
        });
        request.with_header("authorization", authorization).with_body(bytes)
    }

    /// Sends a request until there is a response that another attempt would not change.
    async fn exchange(
        &self,
        method: Method,
        key: &str,
        content: &ObjectContent,
    ) -> Result<UpstreamResponse, StorageError> {
        let mut attempt = 1;
        loop {
            let now = self.clock.now();
            let request = self.sign(method, key, content.clone(), now);
            let problem = match self.sender.exchange(request, Call::new("", b"", now)).await {
                Ok(response) => match transient_problem(&response) {
                    Some(problem) => problem,
                    None => return Ok(response),
                },
                Err(missed) => missed.fault.message,
            };
            if attempt == ATTEMPTS {
                return Err(StorageError::Unavailable(problem));
            }
            sleep(self.backoff * 2_u32.pow(attempt - 1)).await;
            attempt += 1;
        }
    }

    async fn store(&self, key: &str, content_type: &str, bytes: Bytes) -> Result<(), StorageError> {
        validate_file(key, content_type, &bytes)?;
        // Hashing the largest file takes long enough to hold up others.
        let hashed = bytes.clone();
        let sha256 = spawn_blocking(move || sha256_hex(&hashed)).await;
        let sha256 = sha256.map_err(|error| StorageError::Unavailable(error.to_string()))?;
        let content = ObjectContent { content_type: Some(content_type.to_owned()), bytes, sha256 };
        let response = self.exchange(Method::Put, key, &content).await?;
        if response.status.is_success() { Ok(()) } else { Err(ErrorResponse::read(&response).into()) }
    }

    async fn load(&self, key: &str) -> Result<Option<StoredFile>, StorageError> {
        validate_key(key)?;
        let content = ObjectContent { content_type: None, bytes: Bytes::new(), sha256: sha256_hex(b"") };
        let response = self.exchange(Method::Get, key, &content).await?;
        if !response.status.is_success() {
            let error = ErrorResponse::read(&response);
            return if error.is_absent() { Ok(None) } else { Err(error.into()) };
        }
        let kind = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let content_type = kind.unwrap_or(content_type::UNKNOWN).to_owned();
        match response.content {
            Content::Whole(bytes) => Ok(Some(StoredFile { content_type, bytes })),
            Content::TooLarge { .. } => Err(StorageError::TooLarge),
            Content::Cut(reason) => Err(StorageError::Unavailable(reason)),
            Content::Relayed => Err(StorageError::Unavailable("the body was not kept".into())),
        }
    }
}

/// Why a request is to be repeated, if it is.
fn transient_problem(response: &UpstreamResponse) -> Option<String> {
    if let (Content::Cut(reason), true) = (&response.content, response.status.is_success()) {
        return Some(reason.clone());
    }
    let error = (!response.status.is_success()).then(|| ErrorResponse::read(response))?;
    error.is_transient().then(|| StorageError::from(error).to_string())
}

impl ResultStorage for S3Storage {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Bytes) -> StorageFuture<'a, ()> {
        Box::pin(self.store(key, content_type, bytes))
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<StoredFile>> {
        Box::pin(self.load(key))
    }
}

impl fmt::Debug for S3Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, credential) = (&self.base, &self.credential);
        f.debug_struct("S3Storage")
            .field("base", base)
            .field("credential", credential)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
