//! Connections to the upstream: TCP or TLS, there within a time or not at all.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::upstream::{BadUpstream, Upstream};
use crate::body::BoxError;

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    over: Over,
    within: Duration,
}

#[derive(Clone)]
enum Over {
    Tcp(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

/// A connection took too long to be there.
#[derive(Debug, thiserror::Error)]
#[error("there was no connection within {0:?}")]
struct NoConnection(Duration);

impl Connector {
    pub(super) fn new(upstream: &Upstream) -> Result<Self, BadUpstream> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // What is sent on is small or comes in large pieces; somebody waits for both.
        tcp.set_nodelay(true);
        let over = if upstream.is_tls() { Over::Tls(tls(tcp, upstream)?) } else { Over::Tcp(tcp) };
        Ok(Self { over, within: upstream.connect_timeout })
    }
}

fn tls(tcp: HttpConnector, upstream: &Upstream) -> Result<HttpsConnector<HttpConnector>, BadUpstream> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_platform_verifier(provider)
        .map_err(|error| BadUpstream::Certificates(error.to_string()))?
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
        match &mut self.over {
            Over::Tcp(tcp) => tcp.poll_ready(context).map_err(Into::into),
            Over::Tls(tls) => tls.poll_ready(context),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let within = self.within;
        let connecting: Self::Future = match &mut self.over {
            Over::Tcp(tcp) => {
                let connecting = tcp.call(to);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            Over::Tls(tls) => Box::pin(tls.call(to)),
        };
        Box::pin(
            async move { tokio::time::timeout(within, connecting).await.map_err(|_| NoConnection(within))? },
        )
    }
}
