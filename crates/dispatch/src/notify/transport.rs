//! Sends one POST to a URL that a user named: over a connection of its own, to a public address,
//! without following redirects. Of the response only the head is read.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, response};
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use tidegate_upstream::FieldRefusal;
use tidegate_upstream::http::{TlsConnector, tls_connector};
use tokio::time::timeout;
use url::Url;

use crate::public_address::PublicResolver;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends notifications.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    plain: Client<HttpConnector<PublicResolver>, Full<Bytes>>,
    tls: Client<TlsConnector<PublicResolver>, Full<Bytes>>,
}

/// Why no response came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryError {
    /// Whether the receiver may have the notification.
    pub may_have_arrived: bool,
    pub reason: String,
}

impl Transport {
    pub(super) fn new(allows_private: bool) -> Result<Self, FieldRefusal> {
        let mut tcp = HttpConnector::new_with_resolver(PublicResolver::new(allows_private));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = tls_connector(tcp.clone())
            .map_err(|error| FieldRefusal::new("webhook", format!("TLS cannot be set up: {error}.")))?;
        let mut builder = Client::builder(TokioExecutor::new());
        // An idle connection that is just being closed would lose a notification now and then.
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        Ok(Self { plain: builder.build(tcp), tls: builder.build(tls) })
    }

    /// Sends a body of JSON with these headers.
    pub(super) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        time_max: Duration,
    ) -> Result<response::Parts, DeliveryError> {
        let Ok(mut request) = Request::post(url.as_str()).body(Full::new(body)) else {
            return Err(DeliveryError {
                may_have_arrived: false,
                reason: "its URL cannot be written".into(),
            });
        };
        let fixed = [
            (ACCEPT, HeaderValue::from_static("*/*")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")))),
        ];
        request.headers_mut().extend(fixed);
        request.headers_mut().extend(headers);
        let sending = match url.scheme() {
            "https" => self.tls.request(request),
            _ => self.plain.request(request),
        };
        match timeout(time_max, sending).await {
            Ok(Ok(response)) => Ok(response.into_parts().0),
            Ok(Err(error)) => Err(DeliveryError::from(&error)),
            Err(_) => {
                let reason = format!("no response came within {} ms", time_max.as_millis());
                Err(DeliveryError { may_have_arrived: true, reason })
            }
        }
    }
}

impl From<&ClientError> for DeliveryError {
    fn from(error: &ClientError) -> Self {
        let mut cause: &dyn Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Self { may_have_arrived: !error.is_connect(), reason: cause.to_string() }
    }
}
