//! An incoming request: bot, address, route, reason. It decides nothing.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use hyper::{Method, Request};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tidegate_core::fingerprint::Fingerprint;

use super::refusal::{DiscordErrorCode, DiscordRefusal};
use crate::server::PeerAddr;

/// Longest reason, in characters.
const REASON_LEN_MAX: usize = 512;

/// A request.
#[derive(Debug)]
pub struct DiscordRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The query string.
    pub query: String,
    /// The address it came from.
    pub peer: IpAddr,
    /// The bot of its token.
    pub bot: Option<u64>,
    /// Whether it has a user agent.
    pub has_agent: bool,
    /// The reason it gives.
    pub reason: Option<String>,
    body: Option<Value>,
}

impl DiscordRequest {
    /// Reads the relevant parts of a request.
    #[must_use]
    pub fn of(request: &Request<Bytes>) -> Self {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let token = header("authorization").and_then(|value| value.strip_prefix("Bot ")).map(str::trim);
        let reason = header("x-audit-log-reason").map(|text| percent_decode_str(text).decode_utf8_lossy());
        let peer = request.extensions().get::<PeerAddr>().map(|peer| peer.0);
        let body = request.body();
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            peer: peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            bot: token.filter(|token| !token.is_empty()).map(bot),
            has_agent: header("user-agent").is_some_and(|agent| !agent.trim().is_empty()),
            reason: reason.map(|reason| reason.chars().take(REASON_LEN_MAX).collect()),
            body: if body.is_empty() { Some(json!({})) } else { serde_json::from_slice(body).ok() },
        }
    }

    /// Returns its body.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn body(&self) -> Result<&Value, DiscordRefusal> {
        self.body.as_ref().ok_or_else(|| DiscordErrorCode::NoJson.into())
    }
}

/// Derives the bot of a token, which stays secret.
fn bot(token: &str) -> u64 {
    let hash = Fingerprint::of("sim discord token").part(token.as_bytes()).short();
    1_000_000_000_000_000_002 + (hash as u64 >> 8)
}
