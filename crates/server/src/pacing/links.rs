//! Rewrites links of an upstream to itself, in `Link` and `Location`, so that they lead through the
//! proxy. A client that follows an original link would call the upstream past its limits, with a
//! token that is Tidegate's.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;
use tidegate_idempotency::proxy::rewrite_references;
use tidegate_upstream::http::target::BaseUrl;

use super::response::is_from_upstream;
use super::target::{PREFIX, ProxyTarget};
use crate::listen::TlsConnection;
use crate::state::ServerState;

/// Set by the proxy that terminates TLS before this server.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

pub(crate) async fn layer(State(server): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    if !target.starts_with(PREFIX) || !server.pacing.config.rewrite_links {
        return next.run(request).await;
    }
    let (target, origin) = (target.to_owned(), origin(&request));
    let mut response = next.run(request).await;
    if is_from_upstream(&response)
        && let Some(target) = ProxyTarget::read(&target)
        && let Some(base) = server.pacing.upstream(&target.upstream).and_then(|served| served.base.as_ref())
    {
        let proxy = format!("{}{PREFIX}{}", origin.unwrap_or_default(), target.upstream);
        LinkRewriter { base, request_path: &target.path, proxy: &proxy }.rewrite(response.headers_mut());
    }
    response
}

/// The origin by which the client calls this server: scheme and host.
fn origin(request: &Request) -> Option<String> {
    let text = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = text(&HOST).or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))?;
    let is_forwarded_tls = text(&FORWARDED_PROTO).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let is_tls = is_forwarded_tls || request.extensions().get::<TlsConnection>().is_some();
    Some(format!("{}://{host}", if is_tls { "https" } else { "http" }))
}

/// What the links of one response are compared with.
struct LinkRewriter<'a> {
    /// The base URL of the upstream.
    base: &'a BaseUrl,
    /// The path of the request.
    request_path: &'a str,
    /// The proxy's URL of the same upstream, without a trailing slash.
    proxy: &'a str,
}

impl LinkRewriter<'_> {
    fn rewrite(&self, headers: &mut HeaderMap) {
        rewrite_references(headers, |reference| self.rewrite_reference(reference));
    }

    /// Rewrites a reference below the base to lead through the proxy. A relative one that leads
    /// elsewhere gets the upstream's origin: relative to the proxy it would lead to this server.
    fn rewrite_reference(&self, reference: &str) -> Option<String> {
        match self.base.path_to(reference, self.request_path) {
            Some(path) => Some(format!("{}{path}", self.proxy)),
            None => self.base.absolute(reference, self.request_path),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::{LINK, LOCATION};

    use super::*;

    fn rewritten(name: HeaderName, values: &[&str]) -> Vec<String> {
        let base = BaseUrl::parse("https://acme.myshopify.com/admin").unwrap();
        let links =
            LinkRewriter { base: &base, request_path: "/orders.json", proxy: "http://tide:7400/proxy/acme" };
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        links.rewrite(&mut headers);
        headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    /// LIM-28: every link of the upstream to itself leads through the proxy, and no other is
    /// touched.
    #[test]
    fn lim_28_links_lead_through_the_proxy() {
        let links = [
            "<https://acme.myshopify.com/admin/orders.json?page_info=a>; rel=\"previous\", \
             <https://acme.myshopify.com/admin/orders.json?page_info=b>; rel=\"next\"; title=\"<https://acme.myshopify.com/admin/x>\"",
            "<https://other.example/admin/>; rel=\"help\", </admin/orders.json?page=3>; rel=last, <",
        ];
        let expected = [
            "<http://tide:7400/proxy/acme/orders.json?page_info=a>; rel=\"previous\", \
             <http://tide:7400/proxy/acme/orders.json?page_info=b>; rel=\"next\"; title=\"<https://acme.myshopify.com/admin/x>\"",
            "<https://other.example/admin/>; rel=\"help\", <http://tide:7400/proxy/acme/orders.json?page=3>; rel=last, <",
        ];
        assert_eq!(rewritten(LINK, &links), expected);
        let location = |to| rewritten(LOCATION, &[to]);
        assert_eq!(location("/admin/orders/7.json"), ["http://tide:7400/proxy/acme/orders/7.json"]);
        assert_eq!(location("https://acme.myshopify.com/login"), ["https://acme.myshopify.com/login"]);
        assert_eq!(location("/login"), ["https://acme.myshopify.com/login"]);
        assert_eq!(location("//other.example/x"), ["https://other.example/x"]);
        assert!(rewritten(LINK, &[]).is_empty());
    }
}
