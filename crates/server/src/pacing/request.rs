//! Turns a client's own request into an operation: what is passed, removed and refused. Credentials
//! are never stored with it: the upstream's own credential replaces them, and without one they are
//! refused. Cookies are dropped, because a client with a cookie jar sends them unasked.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, TRAILER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use tidegate::Submission;
use tidegate_core::bounds::PRIORITY_MAX;
use tidegate_core::{OnFailure, OnUnknown};
use tidegate_encoding::AcceptEncoding;
use tidegate_idempotency::strip_hop_by_hop;
use tidegate_upstream::http::ResponseWaiter;
use tidegate_upstream::request::header;
use tidegate_upstream::{Envelope, FieldRefusal, HttpRequest};

use super::target::ProxyTarget;
use super::{PacedProxy, ProxiedUpstream};
use crate::error::{Error, ErrorCode, Result};
use crate::wire::object::truncate_name;

/// The prefix of Tidegate's own headers in requests and responses.
const OURS: &str = "x-tidegate-";
pub(crate) const GROUP: HeaderName = HeaderName::from_static("x-tidegate-group");
const PRIORITY: HeaderName = HeaderName::from_static("x-tidegate-priority");

/// Whether a header is between the client and Tidegate only.
pub(super) fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with(OURS)
}

/// Removes the headers of the connection and Tidegate's own token.
pub(crate) fn end_to_end_headers(mut headers: HeaderMap, has_tokens: bool) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    for name in [HOST, CONTENT_LENGTH, EXPECT, TRAILER] {
        headers.remove(name);
    }
    if has_tokens {
        headers.remove(AUTHORIZATION);
    }
    headers
}

/// A client's request.
#[derive(Clone)]
pub(crate) struct ProxyRequest<'a> {
    pub method: &'a Method,
    /// Path and query, as received.
    pub target: &'a str,
    /// The headers that `end_to_end_headers` has left.
    pub headers: HeaderMap,
    /// Its body; `None` if it is streamed.
    pub body: Option<Bytes>,
    pub request_id: Arc<str>,
}

impl ProxyRequest<'_> {
    /// Converts the request to a submission, and returns a waiter for its response.
    ///
    /// # Errors
    /// When a part of the request cannot be forwarded.
    pub(crate) fn into_submission(mut self, pacing: &PacedProxy) -> Result<(Submission, ResponseWaiter)> {
        let target = ProxyTarget::read(self.target)
            .ok_or_else(|| unknown_upstream(pacing, self.target.split('?').next().unwrap_or_default()))?;
        let served =
            pacing.upstream(&target.upstream).ok_or_else(|| unknown_upstream(pacing, &target.upstream))?;
        let expected = pacing.handover.register();
        // Order is opt-in: a call without a group waits for no other call, only for limits.
        let group = take_header(&mut self.headers, &GROUP)?
            .unwrap_or_else(|| format!("{}/{}", target.upstream, expected.ticket()));
        let priority =
            take_header(&mut self.headers, &PRIORITY)?.map_or(Ok(0), |text| parse_priority(&text))?;
        let method = tidegate_upstream::Method::parse(self.method.as_str()).ok_or_else(|| {
            Error::new(
                ErrorCode::Invalid,
                format!("The method {} cannot be forwarded.", truncate_name(self.method.as_str())),
            )
        })?;
        let mut request = HttpRequest::new(method, target.path.as_ref());
        request.headers = stored_headers(&self.headers, served)?;
        let upstream = target.upstream.into_owned();
        let name = Arc::from(upstream.as_str());
        let envelope = match &self.body {
            Some(body) => Envelope::proxied(upstream, request, body, expected.ticket()),
            None => Envelope::streamed(upstream, request, expected.ticket()),
        };
        // The dialect decides, as in the queue: a header that its API does not know makes nothing
        // safe.
        let may_be_repeated =
            self.body.is_some() && served.dialect.on_unknown(&envelope.request) == OnUnknown::Repeat;
        let payload = envelope.encode().map_err(|refusal| too_large(&refusal))?;
        let submission = Submission::new("http", group, payload)
            .with_upstream(name)
            .with_request_id(self.request_id)
            .with_priority(priority)
            // One attempt if it must not happen twice, so that an unknown outcome ends it and
            // delays no one.
            .with_max_attempts(if may_be_repeated { pacing.config.max_attempts } else { 1 })
            .with_on_unknown(OnUnknown::Repeat)
            // The client sees the failure, and its next call does not wait for an operator.
            .with_on_failure(OnFailure::Skip)
            // An operation that outlives this process and its waiting client must not start any
            // more.
            .with_deadline(pacing.config.wait + served.timeout)
            .with_start_within(pacing.config.wait);
        Ok((submission, expected))
    }
}

/// The headers as they are stored: each name once, without cookies and without those that the
/// upstream's own credential replaces.
fn stored_headers(headers: &HeaderMap, served: &ProxiedUpstream) -> Result<Vec<(String, String)>> {
    let mut kept = Vec::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let is_credential = served.credential.as_ref().is_some_and(|(credential, _)| credential == name);
        if is_credential || name == header::OPERATION || name == COOKIE {
            continue;
        }
        if is_ours(name) {
            let message = format!("The header {name} is not known; there are {GROUP} and {PRIORITY}.");
            return Err(Error::new(ErrorCode::Malformed, message).field(name.as_str()));
        }
        let values: Result<Vec<&str>> =
            headers.get_all(name).iter().map(|value| header_text(name, value)).collect();
        let value = values?.join(", ");
        // Dialects read the response, so the upstream is asked for no encoding that cannot be
        // decoded here.
        let value = if name == ACCEPT_ENCODING { AcceptEncoding::parse(&value).to_string() } else { value };
        kept.push((name.as_str().to_owned(), value));
    }
    Ok(kept)
}

fn take_header(headers: &mut HeaderMap, name: &HeaderName) -> Result<Option<String>> {
    headers.remove(name).map(|value| header_text(name, &value).map(str::to_owned)).transpose()
}

fn header_text<'a>(name: &HeaderName, value: &'a HeaderValue) -> Result<&'a str> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| {
        Error::new(ErrorCode::Invalid, format!("The header {name} has a value that is not UTF-8."))
            .field(name.as_str())
    })
}

fn parse_priority(text: &str) -> Result<u8> {
    text.trim().parse().ok().filter(|priority| *priority <= PRIORITY_MAX).ok_or_else(|| {
        let message = format!("The header {PRIORITY} must be a whole number, 0 to {PRIORITY_MAX}.");
        Error::new(ErrorCode::Invalid, message).field(PRIORITY.as_str())
    })
}

fn unknown_upstream(pacing: &PacedProxy, upstream: &str) -> Error {
    let known = pacing.names().collect::<Vec<_>>().join(", ");
    let message = format!("No upstream is called {:?}; configured: {known}.", truncate_name(upstream));
    Error::new(ErrorCode::UnknownUpstream, message).field("upstream")
}

fn too_large(refusal: &FieldRefusal) -> Error {
    Error::new(ErrorCode::TooLarge, refusal.message.clone()).field("body")
}

#[cfg(test)]
mod tests {
    use tidegate_shopify::ShopifyDialect;
    use tidegate_upstream::http::{Dialect, PlainDialect, UpstreamConfig};

    use super::*;
    use crate::config::PacingConfig;

    const PACING: PacingConfig =
        PacingConfig { wait: std::time::Duration::from_secs(1), max_attempts: 3, rewrite_links: true };

    /// How many attempts a POST has through an upstream of this dialect.
    fn attempts(dialect: Arc<dyn Dialect>, path: &str, body: &'static str) -> Option<u16> {
        let pacing =
            PacedProxy::new(PACING, &vec![(UpstreamConfig::new("acme", "http://localhost"), dialect)]);
        let asked = ProxyRequest {
            method: &Method::POST,
            target: &format!("/proxy/acme{path}"),
            headers: headers(&[("idempotency-key", "k"), ("content-type", "application/json")]),
            body: Some(Bytes::from_static(body.as_bytes())),
            request_id: "r".into(),
        };
        asked.into_submission(&pacing).unwrap().0.max_attempts
    }

    /// LIM-28, OPS-23: a key in a header makes a POST repeatable if the upstream supports such
    /// keys. Shopify does not, so there a change is sent once, whatever its headers say; a query
    /// may be sent again.
    #[test]
    fn lim_28_ops_23_the_dialect_says_what_may_be_made_twice() {
        let graphql = "/admin/api/2025-04/graphql.json";
        let change = r#"{"query":"mutation { productCreate(product: {title: \"a\"}) { product { id } } }"}"#;
        let shop = || Arc::new(ShopifyDialect::new("acme", 1)) as Arc<dyn Dialect>;
        assert_eq!(attempts(Arc::new(PlainDialect::new("acme", &[])), "/orders", "{}"), Some(3));
        assert_eq!(attempts(shop(), graphql, change), Some(1));
        assert_eq!(attempts(shop(), "/admin/api/2025-04/orders.json", "{}"), Some(1));
        assert_eq!(attempts(shop(), graphql, r#"{"query":"{ shop { name } }"}"#), Some(3));
    }

    /// LIM-28, LIM-26: calls without a group wait for no other, whatever the dialect; a named group
    /// keeps its order.
    #[test]
    fn lim_28_lim_26_calls_without_a_group_have_no_order() {
        let group = |dialect: Arc<dyn Dialect>, named: &[(&'static str, &str)]| {
            let pacing =
                PacedProxy::new(PACING, &vec![(UpstreamConfig::new("acme", "http://localhost"), dialect)]);
            let call = || ProxyRequest {
                method: &Method::GET,
                target: "/proxy/acme/x",
                headers: headers(named),
                body: Some(Bytes::new()),
                request_id: "r".into(),
            };
            [call(), call()].map(|call| call.into_submission(&pacing).unwrap().0.group)
        };
        let discord = || {
            let settings = tidegate_discord::DiscordSettings::default();
            Arc::new(tidegate_discord::DiscordDialect::new("acme", "http://localhost", settings))
        };
        let dialects: [Arc<dyn Dialect>; 2] = [Arc::new(PlainDialect::new("acme", &[])), discord()];
        for dialect in dialects {
            let [one, other] = group(dialect, &[]);
            assert!(one.starts_with("acme/") && other.starts_with("acme/") && one != other, "{one} {other}");
        }
        let named = group(discord(), &[("x-tidegate-group", "g")]);
        assert_eq!(named.map(|group| group.to_string()), ["g", "g"]);
    }

    /// LIM-28, OPS-23: a query is submitted again when its node died, whatever its method; a change
    /// is not, even if a repeat would be harmless because of a key that belongs to the first
    /// operation.
    #[test]
    fn lim_28_ops_23_a_query_is_handed_in_anew() {
        let dialect = Arc::new(ShopifyDialect::new("acme", 1)) as Arc<dyn Dialect>;
        let pacing =
            PacedProxy::new(PACING, &vec![(UpstreamConfig::new("acme", "http://localhost"), dialect)]);
        let reads = |target: &str, body: &'static str| {
            let body = Bytes::from_static(body.as_bytes());
            pacing.only_reads("POST", target, Some("application/json"), &body)
        };
        let graphql = "/proxy/acme/admin/api/2026-04/graphql.json";
        assert!(reads(graphql, r#"{"query":"{ shop { name } }"}"#));
        assert!(!reads(graphql, r#"{"query":"mutation { refundCreate(input: {}) { refund { id } } }"}"#));
        assert!(!reads("/proxy/acme/admin/api/2026-04/orders.json", r#"{"query":"{ shop { name } }"}"#));
        assert!(!reads("/proxy/other/admin/api/2026-04/graphql.json", r#"{"query":"{ shop { name } }"}"#));
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        headers
    }

    fn served(credential: Option<&'static str>) -> ProxiedUpstream {
        let credential = credential.map(|name| (HeaderName::from_static(name), String::new()));
        let dialect = Arc::new(PlainDialect::new("acme", &[]));
        ProxiedUpstream { credential, timeout: std::time::Duration::from_secs(1), dialect, base: None }
    }

    /// LIM-28: the connection's own headers, our token and the upstream's credential are removed;
    /// the rest passes.
    #[test]
    fn lim_28_what_passes_and_what_does_not() {
        let all = headers(&[
            ("host", "tidegate"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("content-length", "3"),
            ("expect", "100-continue"),
            ("authorization", "Bearer hunter2"),
            ("x-shopify-access-token", "hunter2"),
            ("tidegate-operation", "op_1"),
            ("cookie", "session=hunter2"),
            ("accept", "a"),
            ("accept", "b"),
            ("accept-encoding", "gzip, br;q=0.5, sdch"),
            ("idempotency-key", "k"),
        ]);
        let kept =
            stored_headers(&end_to_end_headers(all, true), &served(Some("x-shopify-access-token"))).unwrap();
        let mut kept: Vec<_> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        kept.sort_unstable();
        let encodings = ("accept-encoding", "gzip, br;q=0.5");
        assert_eq!(kept, [("accept", "a, b"), encodings, ("idempotency-key", "k")]);
        let mine = end_to_end_headers(headers(&[("authorization", "Bearer x")]), false);
        assert!(mine.contains_key(AUTHORIZATION), "without tokens it is not ours to take");
    }

    #[test]
    fn what_is_misspelled_is_refused() {
        let wrong = stored_headers(&headers(&[("x-tidegate-gruop", "g")]), &served(None)).unwrap_err();
        assert_eq!((wrong.code, wrong.field.as_deref()), (ErrorCode::Malformed, Some("x-tidegate-gruop")));
        for text in ["5", "-1", "high", ""] {
            assert!(parse_priority(text).is_err(), "{text}");
        }
        assert_eq!(parse_priority(" 4").ok(), Some(4));
    }
}
