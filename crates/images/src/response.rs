//! How a call to a provider ended, as any HTTP client can report it.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde_json::Value;
use tidegate_core::{AttemptEnd, Time};
use tidegate_upstream::retry_after;

/// The longest part of a text response in a message.
const EXCERPT_CHARS_MAX: usize = 200;

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum ProviderReply<'a> {
    /// The request was not sent: no connection, no address, no TLS.
    NotSent(&'a str),
    /// It was sent, and no response came.
    NoAnswer(&'a str),
    /// A response came.
    Response(ProviderResponse<'a>),
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct ProviderResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, or what came of it.
    pub body: &'a [u8],
    /// Whether the body is complete.
    pub is_complete: bool,
    /// When it came.
    pub received_at: Time,
}

impl ProviderResponse<'_> {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; `Null` when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The wait that `Retry-After` asks for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        retry_after::parse(self.headers.get(RETRY_AFTER)?.to_str().ok()?, self.received_at)
    }

    pub(crate) fn end(&self) -> AttemptEnd {
        AttemptEnd::Answered {
            status: self.status,
            is_complete: self.is_complete,
            asks_to_wait: self.retry_after().is_some(),
        }
    }

    /// The status and the beginning of a text body, for messages.
    pub(crate) fn describe(&self) -> String {
        let text = std::str::from_utf8(self.body).unwrap_or_default().trim();
        if text.is_empty() || text.starts_with('<') {
            return format!("HTTP {}", self.status);
        }
        let excerpt: String = text.chars().take(EXCERPT_CHARS_MAX).collect();
        format!("HTTP {}: {excerpt}", self.status)
    }
}
