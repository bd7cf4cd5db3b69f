//! Data stored with a request that a client sent through the proxy: where its response is awaited,
//! and a body that JSON cannot represent. Callers of the API cannot set any of this.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Body, Envelope, HttpRequest};
use crate::port::FieldRefusal;

/// Marks a request as a proxied one, to be sent unchanged.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyInfo {
    /// The ticket of whoever waits for the response.
    pub ticket: String,
    /// The body, where the request cannot represent it exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Whether its body is not stored, but streamed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streamed: bool,
}

impl ProxyInfo {
    /// Returns the body stored here.
    pub(super) fn body(&mut self) -> Result<Option<Body>, FieldRefusal> {
        let Some(text) = self.base64.take() else { return Ok(None) };
        let bytes =
            STANDARD.decode(text).map_err(|_| FieldRefusal::new("request.body", "It is not base64."))?;
        Ok(Some(Body::Bytes(bytes.into())))
    }
}

impl fmt::Debug for ProxyInfo {
    /// Shows nothing of the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyInfo").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Envelope {
    /// Creates a request with this body, to be sent byte for byte, whose response is awaited under
    /// a ticket.
    #[must_use]
    pub fn proxied(upstream: String, mut request: HttpRequest, body: &Bytes, ticket: &str) -> Self {
        let mut proxied = ProxyInfo { ticket: ticket.to_owned(), base64: None, streamed: false };
        request.body = match exact(body) {
            // Without a content type none may be added, but JSON and text would get one.
            Some(kept) if body.is_empty() || request.header("content-type").is_some() => kept,
            _ => {
                proxied.base64 = Some(STANDARD.encode(body));
                Body::Empty
            }
        };
        Self { upstream, request, proxied: Some(proxied), completion: None }
    }

    /// Creates a request with a streamed body, whose response is awaited under a ticket.
    #[must_use]
    pub fn streamed(upstream: String, request: HttpRequest, ticket: &str) -> Self {
        let proxied = ProxyInfo { ticket: ticket.to_owned(), base64: None, streamed: true };
        Self { upstream, request, proxied: Some(proxied), completion: None }
    }
}

/// Represents the body as JSON or as text, if that round-trips exactly.
fn exact(body: &Bytes) -> Option<Body> {
    let text = std::str::from_utf8(body).ok()?;
    if text.is_empty() {
        return Some(Body::Empty);
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(json) if json.get().len() == text.len() && !text.starts_with(['"', 'n']) => {
            Some(Body::Json(json.to_owned()))
        }
        _ => Some(Body::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Method;

    /// LIM-28: any body round-trips through storage byte for byte.
    #[test]
    fn lim_28_a_body_is_kept_exactly() {
        let bodies: [&[u8]; 9] = [
            b"",
            br#"{"a": 1.10, "b":[ ]}"#,
            b" {\"a\":1}\n",
            br#""text""#,
            b"null",
            "grüße & co=1".as_bytes(),
            b"\xff\x00\xfe",
            b"\0",
            b"{oops",
        ];
        for kind in [Some("application/json"), None] {
            for body in bodies {
                let mut request = HttpRequest::new(Method::Get, "/x");
                request.headers.extend(kind.map(|kind| ("content-type".to_owned(), kind.to_owned())));
                let envelope = Envelope::proxied("e".into(), request, &Bytes::from_static(body), "t-1")
                    .encode()
                    .unwrap();
                let envelope = Envelope::decode(&envelope).unwrap();
                assert_eq!(envelope.proxied.as_ref().unwrap().ticket, "t-1");
                assert!(kind.is_some() || envelope.request.body.content_type().is_none(), "{body:?}");
                assert_eq!(envelope.request.body.into_bytes(), body);
            }
        }
    }

    /// OPS-22: a request body is not printed.
    #[test]
    fn ops_22_debug_shows_no_body() {
        let request = HttpRequest::new(Method::Post, "/x");
        let envelope = Envelope::proxied("e".into(), request, &Bytes::from_static(b"hunter2"), "t-1");
        let printed = format!("{envelope:?}");
        assert!(!printed.contains("hunter2") && !printed.contains(&STANDARD.encode("hunter2")), "{printed}");
    }

    /// LIM-28: a caller cannot set in a request what only the proxy may.
    #[test]
    fn lim_28_a_caller_cannot_ask_for_it() {
        let json = r#"{"upstream":"e","request":{"method":"POST","path":"/","proxied":{"ticket":"t"}}}"#;
        assert!(Envelope::decode(json.as_bytes()).is_err());
    }
}
