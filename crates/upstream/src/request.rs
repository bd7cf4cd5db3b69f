//! A plain HTTP request as callers write it, and the form in which an operation stores it. It is
//! validated on entry; it can never select a destination outside the upstream's base URL, or a
//! credential.

pub mod body;
pub mod completion;
mod difference;
pub mod envelope;
pub mod header;
mod json_pointer;
pub mod json_text;
mod masked_json;
pub mod path;
pub mod proxied;
pub mod view;

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_core::OnUnknown;

pub use body::Body;
pub use envelope::Envelope;
pub use proxied::ProxyInfo;
pub use view::{BodyView, RequestLine, RequestView};

use crate::port::FieldRefusal;

/// The supported methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    /// The method as it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }

    /// Parses a method as it is sent; `None` for an unsupported one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Options];
        all.into_iter().find(|method| method.as_str() == word)
    }

    /// Whether a request with this method is meant to have a body.
    pub(crate) const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// Whether sending it twice is meant to have the same effect as sending it once.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The path below the upstream's base URL, with its query: starts with `/`.
    pub path: String,
    /// The headers to send; each name once.
    #[serde(default, with = "header::as_map", skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body to send.
    #[serde(default, skip_serializing_if = "Body::is_empty")]
    pub body: Body,
}

impl HttpRequest {
    /// Creates a request without headers or body.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Body::Empty }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Validates the request.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn validate(&self) -> Result<(), FieldRefusal> {
        self.validate_form()?;
        self.refuse_credentials(&[])
    }

    /// Validates the request, whether or not its headers carry credentials.
    pub(crate) fn validate_form(&self) -> Result<(), FieldRefusal> {
        self.validate_head()?;
        if !self.body.is_empty() && matches!(self.method, Method::Get | Method::Head) {
            let message = format!("A {} carries no body; use POST, or put it into the query.", self.method);
            return Err(FieldRefusal::new("request.body", message));
        }
        Ok(())
    }

    /// Validates the request without its body, which a client of the proxy may send with any
    /// method.
    pub(crate) fn validate_head(&self) -> Result<(), FieldRefusal> {
        path::validate(&self.path).map_err(|message| FieldRefusal::new("request.path", message))?;
        header::validate_form(&self.headers).map_err(|message| FieldRefusal::new("request.headers", message))
    }

    /// Refuses credentials in its headers, except under these names.
    pub(crate) fn refuse_credentials(&self, stored: &[String]) -> Result<(), FieldRefusal> {
        header::refuse_credentials(&self.headers, stored)
            .map_err(|message| FieldRefusal::new("request.headers", message))
    }

    /// Returns the value of a header, ignoring the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The default for what follows an unknown outcome: only what may be sent twice is retried.
    #[must_use]
    pub fn on_unknown(&self) -> OnUnknown {
        if self.method.is_idempotent() || self.header(header::IDEMPOTENCY_KEY).is_some() {
            OnUnknown::Repeat
        } else {
            OnUnknown::Ask
        }
    }

    /// The path without its query, which may hold what must not appear in a message.
    #[must_use]
    pub fn path_only(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

impl fmt::Debug for HttpRequest {
    /// Shows the method, the path without its query, and the names of the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("path", &self.path_only())
            .field("headers", &names)
            .field("body", &self.body)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::bounds::PAYLOAD_LEN_MAX;

    fn decode(json: &str) -> Result<Envelope, FieldRefusal> {
        Envelope::decode(json.as_bytes())
    }

    /// OPS-2: the payload of an `http` operation round-trips as written, including numbers and the
    /// order of keys.
    #[test]
    fn ops_2_a_request_reads_back_as_written() {
        let json = r#"{"upstream":"echo","request":{"method":"POST","path":"/x?y=1","headers":{"b":"2","a":"1"},"body":{"z":12345678901234567890123,"a":[1.10]}}}"#;
        let envelope = decode(json).unwrap();
        assert_eq!(envelope.request.header("A"), Some("1"));
        assert_eq!(String::from_utf8(envelope.encode().unwrap()).unwrap(), json);
        let plain = decode(r#"{"upstream":"e","request":{"method":"GET","path":"/","body":null}}"#).unwrap();
        assert!(plain.request.body.is_empty() && plain.request.headers.is_empty());
    }

    /// OPS-2: an invalid request is refused with the field's name.
    #[test]
    fn ops_2_bad_requests_are_refused_by_field() {
        let table = [
            (r#"{"upstream":"e","request":{"method":"TRACE","path":"/"}}"#, "request"),
            (r#"{"upstream":"e","request":{"method":"GET","path":"/","verb":1}}"#, "request"),
            (r#"{"upstream":"e","request":{"method":"GET","path":"x"}}"#, "request.path"),
            (
                r#"{"upstream":"e","request":{"method":"GET","path":"/","headers":{"host":"x"}}}"#,
                "request.headers",
            ),
            (
                r#"{"upstream":"e","request":{"method":"GET","path":"/","headers":{"a":"1","A":"2"}}}"#,
                "request.headers",
            ),
            (r#"{"upstream":"e","request":{"method":"GET","path":"/","body":{}}}"#, "request.body"),
            ("", "request"),
        ];
        for (json, field) in table {
            assert_eq!(decode(json).unwrap_err().field, field, "{json}");
        }
        let long = format!(
            r#"{{"upstream":"e","request":{{"method":"POST","path":"/","body":"{}"}}}}"#,
            "x".repeat(PAYLOAD_LEN_MAX)
        );
        assert!(decode(&long).unwrap_err().message.contains("the most is"));
    }

    /// OPS-23: nothing is retried blindly: only what is safe to repeat, or carries a key for it.
    #[test]
    fn ops_23_only_safe_requests_are_repeated() {
        let mut request = HttpRequest::new(Method::Post, "/");
        assert_eq!(request.on_unknown(), OnUnknown::Ask);
        request.headers.push(("Idempotency-Key".into(), "k".into()));
        assert_eq!(request.on_unknown(), OnUnknown::Repeat);
        assert_eq!(HttpRequest::new(Method::Patch, "/").on_unknown(), OnUnknown::Ask);
        for method in [Method::Get, Method::Head, Method::Put, Method::Delete, Method::Options] {
            assert_eq!(HttpRequest::new(method, "/").on_unknown(), OnUnknown::Repeat, "{method}");
        }
    }

    /// OPS-22: neither bodies, nor header values, nor queries are printed.
    #[test]
    fn ops_22_debug_shows_no_content() {
        let json = r#"{"upstream":"e","request":{"method":"POST","path":"/x?key=hunter2","headers":{"a":"hunter2"},"body":"hunter2"}}"#;
        assert!(!format!("{:?}", decode(json).unwrap()).contains("hunter2"));
        let wrong = r#"{"upstream":"e","request":{"method":"POST","path":"/","headers":"hunter2"}}"#;
        let refusal = decode(wrong).unwrap_err().to_string();
        assert!(!refusal.contains("hunter2") && refusal.contains("column"), "{refusal}");
    }
}
