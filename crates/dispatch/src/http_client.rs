//! Sends what adapters build, each request once, and reports how that ended in the terms that
//! adapters read. It knows no provider.

use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, Method};
use tidegate_core::{AttemptEnd, Time};
use tidegate_images::{ProviderReply, ProviderRequest, ProviderResponse};
use tidegate_upstream::http::exchange::{Exchange, ExchangeError, OneRequest, OneResponse};
use tokio::time::Instant;

use crate::results::CopyError;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response of an API, in bytes: pictures may be in it, in Base64.
const RESPONSE_LEN_MAX: usize = 96 * 1024 * 1024;

/// Sends requests to providers.
#[derive(Debug)]
pub(crate) struct HttpClient(Exchange);

/// What came of a download.
pub(crate) enum Download {
    /// The file.
    Content(Bytes),
    /// The file is at this address, which may be relative.
    Elsewhere(String),
}

/// How a call ended, and when.
pub(crate) struct FinishedCall {
    reply: Result<OneResponse, ExchangeError>,
    received_at: Time,
}

impl HttpClient {
    pub(crate) fn new() -> Self {
        Self(Exchange::new(CONNECT_TIMEOUT))
    }

    /// Sends a request at `now`, once.
    pub(crate) async fn send(&self, request: ProviderRequest, timeout: Duration, now: Time) -> FinishedCall {
        let ProviderRequest { method, url, headers, body } = request;
        let started = Instant::now();
        let reply = self.0.send(OneRequest { method, url, headers, body }, timeout, RESPONSE_LEN_MAX).await;
        FinishedCall { reply, received_at: now.after(started.elapsed()) }
    }

    /// Downloads a file of at most `most` bytes, or says where it is instead.
    ///
    /// # Errors
    /// Without the URL, which may be a secret.
    pub(crate) async fn download(
        &self,
        url: &str,
        headers: HeaderMap,
        timeout: Duration,
        most: usize,
    ) -> Result<Download, CopyError> {
        let request = OneRequest { method: Method::GET, url: url.to_owned(), headers, body: Bytes::new() };
        match self.0.send(request, timeout, most).await {
            Ok(OneResponse { status: 301 | 302 | 303 | 307 | 308, headers, .. }) => {
                let target = headers.get(LOCATION).and_then(|target| target.to_str().ok());
                let target = target.ok_or_else(|| CopyError::transient("its server redirects nowhere"))?;
                Ok(Download::Elsewhere(target.to_owned()))
            }
            Ok(response) if response.status != 200 => {
                Err(CopyError::transient(format!("its server returned {}", response.status)))
            }
            Ok(response) if response.is_too_large => Err(CopyError::too_large(most)),
            Ok(response) if !response.is_complete => Err(CopyError::transient("it broke off")),
            Ok(response) if response.body.is_empty() => Err(CopyError::transient("it is empty")),
            Ok(response) => Ok(Download::Content(response.body)),
            Err(error) => Err(CopyError::transient(error.reason)),
        }
    }
}

impl FinishedCall {
    /// When it ended.
    pub(crate) const fn received_at(&self) -> Time {
        self.received_at
    }

    /// How it ended, as adapters read it.
    pub(crate) fn reply(&self) -> ProviderReply<'_> {
        match &self.reply {
            Ok(response) => ProviderReply::Response(ProviderResponse {
                status: response.status,
                headers: &response.headers,
                body: &response.body,
                is_complete: response.is_complete,
                received_at: self.received_at,
            }),
            Err(error) if error.end == AttemptEnd::NotSent => ProviderReply::NotSent(&error.reason),
            Err(error) => ProviderReply::NoAnswer(&error.reason),
        }
    }

    /// Whether any response came.
    ///
    /// # Errors
    /// Why none did.
    pub(crate) fn answered(&self) -> Result<(), &str> {
        self.reply.as_ref().map(|_| ()).map_err(|error| error.reason.as_str())
    }

    /// The body of a complete success.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn success(&self) -> Result<&Bytes, String> {
        match &self.reply {
            Ok(response) if response.status == 200 && response.is_complete => Ok(&response.body),
            Ok(response) => Err(format!("the response was {}", response.status)),
            Err(error) => Err(error.reason.clone()),
        }
    }
}
