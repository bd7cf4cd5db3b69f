//! The settings of an upstream. Every value has bounds.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use tidegate_core::url_path::escapes_base;

/// How long an idle connection is kept: less than the five seconds after which common servers close
/// theirs, so that a request seldom meets one that is closing.
pub(super) const IDLE: Duration = Duration::from_secs(4);
/// The interval of pings on an HTTP/2 connection with requests on it, and their timeout: many
/// requests share one connection, and none of them could detect that it is dead.
pub(super) const PING_EVERY: Duration = Duration::from_secs(10);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A service behind the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUpstream {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// The prefix of every path, which no path can escape; empty, or with a slash at its beginning
    /// and none at its end.
    pub(super) prefix: String,
    /// Whether the upstream gets the client's `Host` header instead of its own. HTTP/1.1 is used
    /// then.
    pub preserve_host: bool,
    /// Whether links of the upstream to itself become paths of the proxy.
    pub rewrite_links: bool,
    /// Whether to speak HTTP/2 from the first byte. Otherwise TLS negotiates the version, and
    /// connections without TLS use HTTP/1.1.
    pub http2: bool,
    /// How long establishing a connection may take, including TLS and name lookup.
    pub connect_timeout: Duration,
    /// How long the upstream may be silent before its response begins, and within it.
    pub answer_timeout: Duration,
}

/// Why an upstream cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyUpstreamError {
    /// The address is not a URL.
    #[error("the upstream must be a URL such as http://127.0.0.1:8080 or https://api.example.com/v1")]
    Url,
    /// The URL contains parts that are not allowed.
    #[error("the upstream's URL must hold no user, no password, no `?` and no `#`")]
    UnexpectedParts,
    /// A value is out of bounds.
    #[error("`{0}` must be between {1} and {2}")]
    OutOfBounds(&'static str, &'static str, &'static str),
    /// Two settings that exclude each other.
    #[error("an upstream over HTTP/2 gets its own host: choose `http2` or `preserve_host`")]
    HostInHttp2,
    /// The system has no random numbers, from which the proxy's name is made.
    #[error("this system provides no random numbers")]
    NoRandom,
    /// The system's certificates cannot be read.
    #[error("the certificates of this system cannot be used: {0}")]
    Certificates(String),
}

impl ProxyUpstream {
    /// Creates an upstream from a URL; a path in it is the prefix of every path.
    ///
    /// # Errors
    /// When it is not the URL of a service.
    pub fn from_url(url: &str) -> Result<Self, ProxyUpstreamError> {
        if url.contains(['?', '#', '@']) {
            return Err(ProxyUpstreamError::UnexpectedParts);
        }
        let parts = url.parse::<Uri>().map_err(|_| ProxyUpstreamError::Url)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(ProxyUpstreamError::Url);
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS || authority.host().is_empty() {
            return Err(ProxyUpstreamError::Url);
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::path);
        Ok(Self {
            scheme,
            authority,
            prefix: path.trim_end_matches('/').to_owned(),
            preserve_host: false,
            rewrite_links: true,
            http2: false,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(60),
        })
    }

    /// Checks that every value is within its bounds.
    ///
    /// # Errors
    /// Names the first that is not, and its bounds.
    pub fn check(&self) -> Result<(), ProxyUpstreamError> {
        let within = |figure: Duration, from_ms: u64, to_s: u64| {
            (Duration::from_millis(from_ms)..=Duration::from_secs(to_s)).contains(&figure)
        };
        if !within(self.connect_timeout, 10, 300) {
            return Err(ProxyUpstreamError::OutOfBounds("connect_timeout", "10 milliseconds", "5 minutes"));
        }
        if !within(self.answer_timeout, 10, 86_400) {
            return Err(ProxyUpstreamError::OutOfBounds("answer_timeout", "10 milliseconds", "1 day"));
        }
        if self.http2 && self.preserve_host {
            return Err(ProxyUpstreamError::HostInHttp2);
        }
        Ok(())
    }

    /// Returns whether the upstream is the listener at this address of this machine, as far as that
    /// is known without name lookups.
    #[must_use]
    pub fn is_at(&self, listen: SocketAddr) -> bool {
        let port = self.authority.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 });
        let host = self.authority.host().trim_matches(['[', ']']);
        let listens = listen.ip().to_canonical();
        let is_there = match host.parse::<IpAddr>() {
            Ok(ip) => {
                let ip = ip.to_canonical();
                ip == listens || listens.is_unspecified() && (ip.is_loopback() || ip.is_unspecified())
            }
            Err(_) => {
                host.eq_ignore_ascii_case("localhost") && (listens.is_loopback() || listens.is_unspecified())
            }
        };
        port == listen.port() && is_there
    }

    /// Returns whether the upstream uses TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Returns whether only HTTP/1.1 can be used.
    pub(super) fn is_http1(&self) -> bool {
        !self.http2 && (!self.is_tls() || self.preserve_host)
    }

    /// The target of a request for this path; `None` where it would escape the prefix. Without a
    /// prefix, every path passes as it is.
    pub(super) fn target(&self, uri: &Uri) -> Option<Uri> {
        if !self.prefix.is_empty() && escapes_base(uri.path()) {
            return None;
        }
        let asked = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let slash = if asked.starts_with('/') { "" } else { "/" };
        let asked = if asked == "*" { "" } else { asked };
        let path = format!("{}{slash}{asked}", self.prefix);
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        uri.path_and_query(path).build().ok()
    }
}

impl std::fmt::Display for ProxyUpstream {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-12: a path in the URL is a prefix, however the slashes fall.
    #[test]
    fn a_path_is_put_before_every_path() {
        for (url, asked, target) in [
            ("http://h:1", "/a?q=1", "http://h:1/a?q=1"),
            ("http://h:1/", "/a", "http://h:1/a"),
            ("https://h/v1/", "/a/", "https://h/v1/a/"),
            ("http://h/v1", "/?x", "http://h/v1/?x"),
            ("http://h/v1", "http://evil/a", "http://h/v1/a"),
            ("http://h", "*", "http://h/"),
            ("http://[::1]:8080", "/%2e%2e/a", "http://[::1]:8080/%2e%2e/a"),
        ] {
            let target_of = ProxyUpstream::from_url(url).unwrap().target(&asked.parse().unwrap());
            assert_eq!(target_of.unwrap().to_string(), target, "{url} {asked}");
        }
    }

    /// IDM-12: no spelling of a path escapes the prefix; without one every path passes as it is.
    #[test]
    fn no_path_leads_out_of_the_prefix() {
        let target =
            |url: &str, asked: &str| ProxyUpstream::from_url(url).unwrap().target(&asked.parse().unwrap());
        for asked in [
            "/../admin",
            "/a/../../admin",
            "/%2e%2e/admin",
            "/..%2fadmin",
            "/%252e%252e/admin",
            "/..\\admin",
            "/..;/admin",
            "/..",
            "/..?x=1",
            "http://evil/../admin",
        ] {
            assert_eq!(target("http://h/public", asked), None, "{asked}");
            assert!(target("http://h", asked).is_some(), "{asked}");
        }
        for asked in ["/a/../b", "/a?next=/../b", "//a", "/..a/b..", "/%2e/a"] {
            let path = format!("/public{asked}");
            assert_eq!(target("http://h/public/", asked).unwrap().path_and_query().unwrap().as_str(), path);
        }
    }

    /// IDM-12: a proxy detects that it would be its own upstream.
    #[test]
    fn an_upstream_is_known_by_its_address() {
        for (url, listen, is_there) in [
            ("http://127.0.0.1:7402/x", "127.0.0.1:7402", true),
            ("http://localhost:7402", "127.0.0.1:7402", true),
            ("http://localhost:7402", "0.0.0.0:7402", true),
            ("http://127.0.0.1", "[::]:80", true),
            ("https://[::1]", "[::1]:443", true),
            ("http://127.0.0.1:7402", "127.0.0.1:7403", false),
            ("http://10.0.0.1:7402", "0.0.0.0:7402", false),
            ("http://api.example.com:7402", "127.0.0.1:7402", false),
        ] {
            let upstream = ProxyUpstream::from_url(url).unwrap();
            assert_eq!(upstream.is_at(listen.parse().unwrap()), is_there, "{url} {listen}");
        }
    }

    #[test]
    fn what_is_no_service_is_refused() {
        for url in ["", "host:80", "/path", "ftp://h", "http://", "http:///x"] {
            assert_eq!(ProxyUpstream::from_url(url), Err(ProxyUpstreamError::Url), "{url}");
        }
        for url in ["http://u:p@h", "http://h?x", "http://h/#a"] {
            assert_eq!(ProxyUpstream::from_url(url), Err(ProxyUpstreamError::UnexpectedParts), "{url}");
        }
        let mut upstream = ProxyUpstream::from_url("http://h").unwrap();
        assert_eq!(upstream.check(), Ok(()));
        upstream.answer_timeout = Duration::ZERO;
        assert!(matches!(upstream.check(), Err(ProxyUpstreamError::OutOfBounds("answer_timeout", ..))));
        let both = ProxyUpstream {
            http2: true,
            preserve_host: true,
            ..ProxyUpstream::from_url("http://h").unwrap()
        };
        assert_eq!(both.check(), Err(ProxyUpstreamError::HostInHttp2));
    }
}
