//! Reports the end of a job to the caller's URL, on loopback only: as it should be, or lost, late,
//! twice, or with a forged message before it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::rng::SeededRng;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a delivery that got no 2xx is repeated.
const RETRIES: u32 = 5;
/// The wait before the first repeat; it doubles each time.
const RETRY_WAIT: Duration = Duration::from_millis(200);

/// How often webhooks go wrong, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebhookFaults {
    /// The end is never reported.
    pub lost: f64,
    /// It is reported before the submit is answered.
    pub early: f64,
    /// It is reported twice, under one id.
    pub doubled: f64,
    /// It is reported late.
    pub late: f64,
    /// A message with a wrong signature, which says that the job failed, comes first.
    pub forged: f64,
}

impl WebhookFaults {
    /// Whether every rate is one.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let Self { lost, early, doubled, late, forged } = *self;
        [lost, early, doubled, late, forged].iter().all(|rate| (0.0..=1.0).contains(rate))
    }

    /// Draws how one end is reported. Always draws four numbers.
    pub fn draw(&self, rng: &mut SeededRng) -> WebhookPlan {
        WebhookPlan {
            is_lost: rng.happens(self.lost),
            is_doubled: rng.happens(self.doubled),
            is_late: rng.happens(self.late),
            is_forged: rng.happens(self.forged),
        }
    }
}

/// How one end is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookPlan {
    /// Not at all.
    pub is_lost: bool,
    /// Twice.
    pub is_doubled: bool,
    /// Late.
    pub is_late: bool,
    /// After a forged message.
    pub is_forged: bool,
}

/// A message that is ready to be sent.
#[derive(Clone, Debug)]
pub struct WebhookMessage {
    /// Where to.
    pub url: Arc<str>,
    /// Its signature.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body.
    pub body: Bytes,
}

impl WebhookMessage {
    /// Sends it until it gets a 2xx, a bounded number of times. Returns how often it was sent, and
    /// whether it got one.
    pub async fn deliver(&self) -> (u64, bool) {
        let mut wait = RETRY_WAIT;
        for attempt in 0..=RETRIES {
            if matches!(self.post().await, Some(200..=299)) {
                return (u64::from(attempt) + 1, true);
            }
            if attempt < RETRIES {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        (u64::from(RETRIES) + 1, false)
    }

    /// Sends it once and returns the status; `None` when there was no response, or the URL is not
    /// on loopback.
    pub async fn post(&self) -> Option<u16> {
        tokio::time::timeout(TIMEOUT, self.request()).await.ok()?
    }

    async fn request(&self) -> Option<u16> {
        let uri: Uri = self.url.parse().ok()?;
        let stream = TcpStream::connect(loopback(&uri)?).await.ok()?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, uri.authority()?.as_str())
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body.clone())).ok()?;
        tokio::select! {
            response = sender.send_request(request) => Some(response.ok()?.status().as_u16()),
            // It only ends without a response when the connection broke.
            _ = connection => None,
        }
    }
}

/// The address of a URL on loopback. A simulator calls no one else.
fn loopback(uri: &Uri) -> Option<SocketAddr> {
    if uri.scheme_str() != Some("http") {
        return None;
    }
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let address: IpAddr = host.parse().ok()?;
    address.is_loopback().then(|| SocketAddr::new(address, uri.port_u16().unwrap_or(80)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_called() {
        let found = |url: &str| loopback(&url.parse().unwrap()).map(|address| address.to_string());
        assert_eq!(found("http://127.0.0.1:7/x").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(found("http://localhost/x").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(found("http://[::1]:9/").as_deref(), Some("[::1]:9"));
        for other in ["http://192.0.2.1/x", "https://127.0.0.1/x", "http://hooks.test/x", "/x"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
