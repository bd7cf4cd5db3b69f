//! The full URL of a request. It is always the base URL followed by the request's path, and never
//! another host.

use http::Uri;
use http::header::HeaderValue;
use tidegate_core::masking::mask_path;
use url::Url;

use crate::request::path;

/// The base URL of an upstream.
#[derive(Clone, Debug)]
pub struct BaseUrl {
    url: Url,
}

impl BaseUrl {
    /// Parses the configured URL.
    ///
    /// # Errors
    /// A message. It does not repeat the URL, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("It is not a URL: {error}."))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("It must start with http:// or https://.".into());
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("It names no host.".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("It holds a user or a password; put the credential into token_env.".into());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("It must have neither a query nor a fragment.".into());
        }
        Ok(Self { url })
    }

    /// The origin to connect to, and the `Host` of requests.
    ///
    /// # Errors
    /// A message.
    pub fn origin(&self) -> Result<(Uri, HeaderValue), String> {
        origin(&self.url)
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Its path, without a trailing slash: the prefix of each request's path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// Resolves a path below the base.
    ///
    /// # Errors
    /// A message about a path that leads elsewhere.
    pub fn join(&self, path: &str) -> Result<Url, String> {
        path::resolve(&self.url, path)
    }

    /// Resolves a reference in the response to a request with this path to a path below the base,
    /// with its query and fragment; `None` when it leads elsewhere.
    #[must_use]
    pub fn path_to(&self, reference: &str, request_path: &str) -> Option<String> {
        let url = self.join(request_path).ok()?.join(reference).ok()?;
        let is_same_host =
            url.origin() == self.url.origin() && url.username().is_empty() && url.password().is_none();
        let rest =
            url.path().strip_prefix(self.path()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let rest = rest.filter(|_| is_same_host)?;
        let slash = if rest.is_empty() { "/" } else { "" };
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let fragment = url.fragment().map_or_else(String::new, |fragment| format!("#{fragment}"));
        Some(format!("{slash}{rest}{query}{fragment}"))
    }

    /// Resolves a relative reference in the response to a request with this path to an absolute
    /// URL; `None` when it is absolute already.
    #[must_use]
    pub fn absolute(&self, reference: &str, request_path: &str) -> Option<String> {
        if Url::parse(reference) != Err(url::ParseError::RelativeUrlWithoutBase) {
            return None;
        }
        Some(self.join(request_path).ok()?.join(reference).ok()?.into())
    }

    /// The target of a redirect, for a message: without query, user and fragment, and without what
    /// looks like a token in its path.
    #[must_use]
    pub fn redirect_target(&self, location: &str) -> Option<String> {
        let mut url = self.url.join(location).ok()?;
        let path = mask_path(url.path()).into_owned();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        if url.has_host() && (url.set_username("").is_err() || url.set_password(None).is_err()) {
            return None;
        }
        Some(url.into())
    }
}

/// The origin of a URL, and the `Host` of requests to it.
///
/// # Errors
/// A message, without the URL.
pub(super) fn origin(url: &Url) -> Result<(Uri, HeaderValue), String> {
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let origin = Uri::builder().scheme(url.scheme()).authority(authority.as_str()).path_and_query("/");
    let host = HeaderValue::from_str(&authority);
    origin.build().ok().zip(host.ok()).ok_or_else(|| "Its host cannot be written in a request.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_behind_the_base() {
        let base = BaseUrl::parse("https://host/api/").unwrap();
        assert_eq!(base.join("/x?y=1").unwrap().as_str(), "https://host/api/x?y=1");
        assert_eq!(base.join("/@evil").unwrap().as_str(), "https://host/api/@evil");
        assert_eq!(base.join("/http://evil").unwrap().host_str(), Some("host"));
        assert_eq!(BaseUrl::parse("http://host:81").unwrap().join("/").unwrap().as_str(), "http://host:81/");
    }

    #[test]
    fn what_leads_elsewhere_is_no_url() {
        let base = BaseUrl::parse("http://host/api").unwrap();
        for path in ["@evil/", ".evil/", ":80@evil/", "/../x", "/%2e%2e/x", "/.. ", "x", ""] {
            assert!(base.join(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_base_url_is_a_host_and_a_path() {
        for url in [
            "",
            "host",
            "/x",
            "ftp://host",
            "http://",
            "http://u:hunter2@host",
            "http://u@host",
            "http://host/?a",
            "http://host/#a",
        ] {
            let problem = BaseUrl::parse(url).unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    /// LIM-28: a reference below the base is recognized in every spelling, and nothing else is.
    #[test]
    fn lim_28_a_reference_leads_below_the_base_or_elsewhere() {
        let base = BaseUrl::parse("https://Host:443/api/").unwrap();
        let path = |reference: &str| base.path_to(reference, "/orders/list?x=1");
        assert_eq!(path("https://host/api/orders?page=2#top").as_deref(), Some("/orders?page=2#top"));
        assert_eq!(path("//host/api").as_deref(), Some("/"));
        assert_eq!(path("/api/a%2Fb").as_deref(), Some("/a%2Fb"));
        assert_eq!(path("next?page=3").as_deref(), Some("/orders/next?page=3"));
        assert_eq!(path("?page=3").as_deref(), Some("/orders/list?page=3"));
        for elsewhere in [
            "http://host/api/x",
            "https://host:8443/api/x",
            "https://other/api/x",
            "https://u@host/api/x",
            "https://host/apis",
            "/login",
            "../../x",
            "mailto:a@host",
        ] {
            assert_eq!(path(elsewhere), None, "{elsewhere}");
        }
    }

    /// LIM-28: a relative reference is absolute outside of the response that it came with.
    #[test]
    fn lim_28_a_relative_reference_gets_the_upstreams_origin() {
        let base = BaseUrl::parse("https://host:8443/api").unwrap();
        let absolute = |reference: &str| base.absolute(reference, "/orders/list");
        assert_eq!(absolute("/login?a=1").as_deref(), Some("https://host:8443/login?a=1"));
        assert_eq!(absolute("../../../x").as_deref(), Some("https://host:8443/x"));
        assert_eq!(absolute("//other/x").as_deref(), Some("https://other/x"));
        for absolute_already in ["http://other/x", "mailto:a@host"] {
            assert_eq!(absolute(absolute_already), None, "{absolute_already}");
        }
    }

    /// OPS-22: what a redirect carries in its query or its user appears in no message.
    #[test]
    fn ops_22_a_redirect_is_told_without_what_it_carries() {
        let base = BaseUrl::parse("http://host/api").unwrap();
        assert_eq!(base.redirect_target("/login?next=hunter2#x").unwrap(), "http://host/login");
        let token = base.redirect_target("/hooks/AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/x").unwrap();
        assert_eq!(token, "http://host/hooks/redacted/x");
        assert_eq!(base.redirect_target("https://u:hunter2@evil/a").unwrap(), "https://evil/a");
    }
}
