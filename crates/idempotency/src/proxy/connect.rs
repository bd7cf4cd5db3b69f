//! Connections to the upstream over TCP or TLS, with a timeout.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::upstream::{ProxyUpstream, ProxyUpstreamError};
use crate::body::BoxError;

/// Establishes connections.
#[derive(Clone)]
pub(super) struct Connector {
    inner: InnerConnector,
    within: Duration,
}

#[derive(Clone)]
enum InnerConnector {
    Tcp(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

/// A connection was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection was established within {0:?}")]
struct ConnectTimeout(Duration);

/// Why a connection was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectErrorKind {
    /// The connection was refused.
    Refused,
    /// The host name has no address.
    UnknownHost,
    /// The TLS handshake failed.
    Tls,
    /// Any other reason.
    Other,
}

/// The reason why there is no connection, and its details.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(super) struct ConnectError {
    pub(super) why: ConnectErrorKind,
    #[source]
    cause: BoxError,
}

impl ConnectError {
    /// Describes the error down to its root cause.
    pub(super) fn describe(&self) -> String {
        let mut told = self.cause.to_string();
        let mut next = self.cause.source();
        while let Some(cause) = next {
            let more = cause.to_string();
            if !told.contains(&more) {
                told = format!("{told}: {more}");
            }
            next = cause.source();
        }
        told
    }

    fn of(cause: BoxError, over_tls: bool) -> Self {
        let is_tcp = cause.is::<<HttpConnector as Service<Uri>>::Error>();
        let why = match cause.source().and_then(|root| root.downcast_ref::<io::Error>()) {
            _ if cause.is::<ConnectTimeout>() => ConnectErrorKind::Other,
            Some(root) if is_tcp && root.kind() == io::ErrorKind::ConnectionRefused => {
                ConnectErrorKind::Refused
            }
            // The system's own errors have a number; those of a name lookup have none.
            Some(root) if is_tcp && root.raw_os_error().is_none() => ConnectErrorKind::UnknownHost,
            _ if over_tls && !is_tcp => ConnectErrorKind::Tls,
            _ => ConnectErrorKind::Other,
        };
        Self { why, cause }
    }
}

impl Connector {
    pub(super) fn new(upstream: &ProxyUpstream) -> Result<Self, ProxyUpstreamError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Requests are small or come in large pieces, and latency matters for both.
        tcp.set_nodelay(true);
        let over = if upstream.is_tls() {
            InnerConnector::Tls(tls(tcp, upstream)?)
        } else {
            InnerConnector::Tcp(tcp)
        };
        Ok(Self { inner: over, within: upstream.connect_timeout })
    }
}

fn tls(
    tcp: HttpConnector,
    upstream: &ProxyUpstream,
) -> Result<HttpsConnector<HttpConnector>, ProxyUpstreamError> {
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_platform_verifier(provider)
        .map_err(|error| ProxyUpstreamError::Certificates(error.to_string()))?
        .https_only();
    Ok(if upstream.is_http1() {
        builder.enable_http1().wrap_connector(tcp)
    } else if upstream.http2 {
        builder.enable_http2().wrap_connector(tcp)
    } else {
        builder.enable_all_versions().wrap_connector(tcp)
    })
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.inner {
            InnerConnector::Tcp(tcp) => tcp.poll_ready(context).map_err(Into::into),
            InnerConnector::Tls(tls) => tls.poll_ready(context),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let within = self.within;
        let connecting: Self::Future = match &mut self.inner {
            InnerConnector::Tcp(tcp) => {
                let connecting = tcp.call(to);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            InnerConnector::Tls(tls) => Box::pin(tls.call(to)),
        };
        let over_tls = matches!(self.inner, InnerConnector::Tls(_));
        Box::pin(async move {
            let connected = match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimeout(within).into()),
            };
            connected.map_err(|cause| ConnectError::of(cause, over_tls).into())
        })
    }
}
