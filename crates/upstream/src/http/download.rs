//! Downloads a result that an API stored at a URL it named: one GET without a credential, read in
//! chunks. The result is never held as a whole, redirects are not followed, and the URL, which is
//! itself a secret, appears in no message.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, HOST, HeaderValue};
use http::uri::PathAndQuery;
use tokio::time::timeout;
use url::{Position, Url};

use super::connect::{BoxError, Connector};
use super::connections::{Connections, PooledResponse};
use super::send::innermost;
use super::send_state::WithdrawableBody;
use super::target::origin;

/// Downloads results, each over its own connection.
#[derive(Clone)]
pub struct Downloads {
    connector: Connector,
    is_plain: bool,
    idle_max: Duration,
}

/// A download in progress.
pub struct Download {
    response: PooledResponse,
    idle_max: Duration,
}

/// Why a download failed or broke off, as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadError(pub String);

impl Downloads {
    /// Creates a downloader for `https`, or with `is_plain` for plain `http` only. A chunk may take
    /// at most `idle_max`.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(is_plain: bool, connect_timeout: Duration, idle_max: Duration) -> Result<Self, DownloadError> {
        let connector = Connector::new(is_plain, connect_timeout)
            .map_err(|error| DownloadError(format!("TLS cannot be set up: {}.", innermost(&*error))))?;
        Ok(Self { connector, is_plain, idle_max })
    }

    /// Sends the request; returns once the first byte of the response has arrived.
    ///
    /// # Errors
    /// When the URL is invalid, the server does not respond, or the response is no success.
    pub async fn open(&self, url: &str) -> Result<Download, DownloadError> {
        let url = Url::parse(url).map_err(|error| DownloadError(format!("It is not a URL: {error}.")))?;
        let scheme = if self.is_plain { "http" } else { "https" };
        if url.scheme() != scheme || url.host_str().is_none_or(str::is_empty) {
            return Err(DownloadError(format!(
                "The URL of a result starts with {scheme}:// and names a host."
            )));
        }
        let response = match timeout(self.idle_max, self.get(&url)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(DownloadError(format!("No response came: {}.", innermost(&*error))));
            }
            Err(_) => return Err(self.stalled_error()),
        };
        let status = response.head.status;
        if !status.is_success() {
            return Err(DownloadError(format!(
                "The server returned {status}; a result is kept for a week at most."
            )));
        }
        Ok(Download { response, idle_max: self.idle_max })
    }

    async fn get(&self, url: &Url) -> Result<PooledResponse, BoxError> {
        let (origin, host) = origin(url)?;
        let target = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery])?;
        let (body, _) = WithdrawableBody::new(Bytes::new());
        let mut request = Request::new(body);
        *request.uri_mut() = target.into();
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        Connections::new(self.connector.clone(), origin).send(request).await
    }

    fn stalled_error(&self) -> DownloadError {
        stalled_error(self.idle_max)
    }
}

impl Download {
    /// Returns the next chunk, as large as it came; `None` at the end.
    ///
    /// # Errors
    /// When it breaks off before its end, or nothing arrives for too long.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, DownloadError> {
        match timeout(self.idle_max, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(DownloadError(format!("It broke off: {}.", innermost(&error)))),
            Err(_) => Err(stalled_error(self.idle_max)),
        }
    }
}

fn stalled_error(idle_max: Duration) -> DownloadError {
    DownloadError(format!("No data came within {} ms.", idle_max.as_millis()))
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DownloadError {}

impl fmt::Debug for Downloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloads").field("is_plain", &self.is_plain).finish_non_exhaustive()
    }
}

impl fmt::Debug for Download {
    /// Omits the URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").finish_non_exhaustive()
    }
}
