//! What to send to a provider: a request that is ready for any HTTP client, and the job that it is
//! made from.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tidegate_upstream::Secret;

/// The characters of a query's value that stay as they are.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The longest name of a model.
const MODEL_LEN_MAX: usize = 256;

/// A job to submit.
#[derive(Clone, Copy, Debug)]
pub struct JobRequest<'a> {
    /// The provider's name of the model.
    pub model: &'a str,
    /// The model's input.
    pub input: &'a Value,
    /// Where the provider reports the end, with a token that only it learns.
    pub webhook: Option<&'a str>,
    /// An id of this attempt, sent where the provider has a field for it. It makes no submit
    /// idempotent, except with a generic provider that says so.
    pub attempt: &'a str,
}

/// A request to send exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The headers; the one with the credential is marked sensitive.
    pub headers: HeaderMap,
    /// The body, JSON or empty.
    pub body: Bytes,
}

/// A request that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The input cannot be sent: the user's mistake.
    #[error("{field}: {problem}")]
    Input {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The name of the model is not one of this provider: a mistake in the configuration.
    #[error("{0:?} is no model of {1}")]
    Model(String, &'static str),
    /// The credential has characters that no header may have.
    #[error("the credential cannot be sent in a header")]
    Credential,
}

impl RequestError {
    pub(crate) fn input(field: &str, problem: &'static str) -> Self {
        Self::Input { field: field.to_owned(), problem }
    }
}

impl ProviderRequest {
    pub(crate) fn new(method: Method, url: String) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn with_json(mut self, body: &Value) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Bytes::from(body.to_string());
        self
    }

    pub(crate) fn with_header(mut self, name: &HeaderName, value: &str) -> Result<Self, RequestError> {
        let value = HeaderValue::from_str(value).map_err(|_| RequestError::Credential)?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds the credential, as `prefix` followed by the key.
    pub(crate) fn with_key(
        mut self,
        name: &HeaderName,
        prefix: &str,
        key: &Secret,
    ) -> Result<Self, RequestError> {
        let value = format!("{prefix}{}", key.reveal());
        let mut value = HeaderValue::from_str(&value).map_err(|_| RequestError::Credential)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds a parameter to the query.
    pub(crate) fn with_query(mut self, name: &str, value: &str) -> Self {
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        self.url.push_str(name);
        self.url.push('=');
        self.url.push_str(&encode(value));
        self
    }
}

/// Encodes a text for a query or for one segment of a path.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, QUERY_VALUE).to_string()
}

/// Whether a text is a path of `count` segments that need no encoding and cannot climb.
pub(crate) fn is_path(text: &str, count: std::ops::RangeInclusive<usize>) -> bool {
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && !segment.bytes().all(|b| b == b'.')
            && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    text.len() <= MODEL_LEN_MAX && count.contains(&text.split('/').count()) && text.split('/').all(is_segment)
}

/// The URL that a provider returned, if it is below the configured base: a credential is sent
/// nowhere else.
pub(crate) fn below<'a>(base: &str, url: &'a str) -> Option<&'a str> {
    let rest = url.strip_prefix(base.trim_end_matches('/'))?;
    let is_plain = rest.bytes().all(|b| b.is_ascii_graphic()) && !rest.contains("..");
    (rest.starts_with('/') && is_plain).then_some(url)
}

/// The URL that a response names, if it is below the base.
pub(crate) fn url_below(base: &str, body: &Value, name: &str) -> Option<String> {
    below(base, body.get(name)?.as_str()?).map(str::to_owned)
}

/// Removes the slashes at the end of a base URL.
pub(crate) fn trimmed(base: impl Into<String>) -> String {
    let mut base = base.into();
    base.truncate(base.trim_end_matches('/').len());
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A credential goes to the configured address only, whatever URL a response names.
    #[test]
    fn urls_of_responses_are_used_only_below_the_base() {
        let base = "https://queue.fal.run";
        for good in ["https://queue.fal.run/a/b/requests/1", "https://queue.fal.run/a?x=1"] {
            assert_eq!(below(base, good), Some(good));
        }
        for bad in [
            "https://queue.fal.run.evil.test/a",
            "https://queue.fal.run@evil.test/a",
            "http://queue.fal.run/a",
            "https://evil.test/",
            "https://queue.fal.run",
            "https://queue.fal.run/../a",
            "https://queue.fal.run/a b",
        ] {
            assert_eq!(below(base, bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_models_cannot_leave_their_path() {
        assert!(is_path("fal-ai/flux/dev", 2..=5) && is_path("veo-3.1", 1..=1));
        for bad in ["../x/y", "a//b", "a/b?c", "a/b#", "a/%2e", "", "a", "a/b/c/d/e/f", "a/b c"] {
            assert!(!is_path(bad, 2..=5), "{bad}");
        }
    }

    #[test]
    fn the_credential_is_never_printed() {
        let request = ProviderRequest::new(Method::GET, "http://x.test/".into())
            .with_key(&http::header::AUTHORIZATION, "Key ", &Secret::new("hunter2"))
            .unwrap();
        assert!(!format!("{request:?}").contains("hunter2"));
        let refused = ProviderRequest::new(Method::GET, String::new()).with_key(
            &http::header::AUTHORIZATION,
            "",
            &Secret::new("a\nb"),
        );
        assert_eq!(refused, Err(RequestError::Credential));
    }
}
