//! Opens connections within a timeout: TCP, or TLS with the certificates that the system trusts. It
//! keeps none and sends nothing.

use std::future::poll_fn;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections of one kind.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    transport: Transport,
    timeout: Duration,
}

#[derive(Clone, Debug)]
enum Transport {
    Tcp(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Connector {
    /// Creates a connector for plain or for encrypted connections. A connection must be ready
    /// within `timeout`.
    ///
    /// # Errors
    /// When the system's certificates cannot be used.
    pub(super) fn new(is_plain: bool, timeout: Duration) -> Result<Self, BoxError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(is_plain);
        // A request and its response are small, and a caller waits for both.
        tcp.set_nodelay(true);
        let transport = if is_plain { Transport::Tcp(tcp) } else { Transport::Tls(tls_connector(tcp)?) };
        Ok(Self { transport, timeout })
    }

    /// Opens a connection to an origin: a scheme, a host and a port.
    ///
    /// # Errors
    /// When there is no connection in time. Nothing was sent.
    pub(super) async fn connect(&self, origin: Uri) -> Result<Stream, BoxError> {
        match timeout(self.timeout, self.transport.clone().open(origin)).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no connection within {} ms", self.timeout.as_millis()).into()),
        }
    }
}

impl Transport {
    async fn open(self, origin: Uri) -> Result<Stream, BoxError> {
        match self {
            Self::Tcp(mut tcp) => {
                poll_fn(|context| tcp.poll_ready(context)).await?;
                Ok(MaybeHttpsStream::Http(tcp.call(origin).await?))
            }
            Self::Tls(mut tls) => {
                poll_fn(|context| tls.poll_ready(context)).await?;
                tls.call(origin).await
            }
        }
    }
}

/// Opens TLS connections, to the addresses that a resolver finds.
pub type TlsConnector<R = GaiResolver> = HttpsConnector<HttpConnector<R>>;

/// Returns a connector that opens TLS connections to servers whose certificates the system trusts.
///
/// # Errors
/// When the system's certificates cannot be read.
pub fn tls_connector<R>(mut tcp: HttpConnector<R>) -> Result<TlsConnector<R>, BoxError> {
    tcp.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider)?;
    Ok(builder.https_only().enable_http1().wrap_connector(tcp))
}
