//! The endpoint of a shop: the path of its base URL, to which the path of each request is appended.
//! Both together decide what a request is, here and nowhere else: a base URL may lead to the shop,
//! to `/admin` or to one version of the API.

use std::borrow::Cow;

use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::{HttpRequest, Method};

use crate::version::{self, ApiVersion};

/// The root of the API.
const ADMIN: &str = "/admin";
/// The parent of its versions.
const API: &str = "/admin/api";

/// The endpoint that requests to a shop go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The path of the base URL, without a trailing slash.
    path: String,
}

impl Endpoint {
    /// Parses a base URL. An invalid one leads to the shop itself: it is refused elsewhere.
    #[must_use]
    pub(crate) fn from_base_url(base_url: &str) -> Self {
        let base = BaseUrl::parse(base_url);
        Self { path: base.map(|base| base.path().to_owned()).unwrap_or_default() }
    }

    /// Returns the full path of a request, from the shop's root.
    #[must_use]
    pub(crate) fn path<'a>(&self, request: &'a HttpRequest) -> Cow<'a, str> {
        if self.path.is_empty() {
            return Cow::Borrowed(&request.path);
        }
        let path = format!("{}{}", self.path, request.path);
        let end = path.find(['?', '#']).unwrap_or(path.len());
        match path[..end].find("/admin/") {
            Some(start) => Cow::Owned(path[start..].to_owned()),
            None => Cow::Borrowed(&request.path),
        }
    }

    /// Returns whether a request is a GraphQL call.
    #[must_use]
    pub(crate) fn is_graphql(&self, request: &HttpRequest) -> bool {
        request.method == Method::Post && version::is_graphql(&self.path(request))
    }

    /// Returns the version that a request asks for.
    #[must_use]
    pub(crate) fn version(&self, request: &HttpRequest) -> Option<ApiVersion> {
        version::of_path(&self.path(request))
    }

    /// Returns the base URL of the shop itself, for callers that write the whole path, and the
    /// version in the base URL.
    #[must_use]
    pub(crate) fn root(base_url: &str) -> (&str, Option<ApiVersion>) {
        let url = base_url.trim_end_matches('/');
        let named = url.rsplit_once('/').and_then(|(rest, last)| Some((rest, last.parse().ok()?)));
        if let Some((rest, version)) = named
            && let Some(root) = rest.strip_suffix(API)
        {
            return (root, Some(version));
        }
        let root = url.strip_suffix(API).or_else(|| url.strip_suffix(ADMIN));
        (root.unwrap_or(base_url), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str) -> HttpRequest {
        HttpRequest::new(Method::Post, path)
    }

    /// LIM-4: a call is GraphQL wherever its base URL ends, and its version is found in either
    /// part.
    #[test]
    fn lim_4_a_request_is_judged_by_its_whole_path() {
        for (base, path) in [
            ("https://acme.myshopify.com", "/admin/api/2026-04/graphql.json"),
            ("https://acme.myshopify.com/admin", "/api/2026-04/graphql.json?x=/admin/api/2025-01/shop.json"),
            ("https://acme.myshopify.com/admin/api/", "/2026-04/graphql.json"),
            ("https://acme.myshopify.com/admin/api/2026-04", "/graphql.json"),
            ("http://localhost:1/shops/acme/admin/api/2026-04/", "/graphql.json"),
            ("http://localhost:1/shops/admin", "/admin/api/2026-04/graphql.json"),
        ] {
            let (site, request) = (Endpoint::from_base_url(base), post(path));
            assert!(site.is_graphql(&request), "{base} {path}");
            assert_eq!(site.version(&request).unwrap().to_string(), "2026-04", "{base} {path}");
            let get = HttpRequest::new(Method::Get, path);
            assert!(!site.is_graphql(&get), "{base} {path}");
        }
        let site = Endpoint::from_base_url("https://acme.myshopify.com/admin/api/2026-04");
        assert!(!site.is_graphql(&post("/products.json?next=/graphql.json")));
        assert_eq!(site.path(&post("/products/1.json")), "/admin/api/2026-04/products/1.json");
        assert_eq!(Endpoint::from_base_url("http://localhost/x").path(&post("/y?z=/admin/")), "/y?z=/admin/");
    }

    #[test]
    fn the_root_of_a_shop_is_before_the_api() {
        let version = "2026-04".parse().ok();
        for (base, root, version) in [
            ("https://acme.myshopify.com", "https://acme.myshopify.com", None),
            ("https://acme.myshopify.com/admin/", "https://acme.myshopify.com", None),
            ("http://l/shops/acme/admin/api", "http://l/shops/acme", None),
            ("http://l/shops/acme/admin/api/2026-04", "http://l/shops/acme", version),
            ("http://l/shops/2026-04", "http://l/shops/2026-04", None),
        ] {
            assert_eq!(Endpoint::root(base), (root, version), "{base}");
        }
    }
}
