//! Protects against other web sites: a browser on this machine can reach the API, and any page it
//! shows may try. Requests that a browser sends for another site are refused, whatever their
//! method; only a link to a page may be followed. Without tokens a host name that is not this
//! machine is refused too.

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};

use crate::api::route::AllowedOrigin;
use crate::error::{Error, ErrorCode, Result};

/// Refuses a host name that another site may have pointed at this machine (DNS rebinding).
pub(crate) fn require_local_host(head: &Parts) -> Result<()> {
    if host(&head.headers, &head.uri).as_deref().is_some_and(is_this_machine) {
        return Ok(());
    }
    let message = "Without a token this server answers only to 127.0.0.1, [::1] and localhost.";
    Err(Error::new(ErrorCode::Forbidden, message))
}

/// Refuses requests that a browser sends for another site.
pub(crate) fn reject_cross_site(head: &Parts, visitors: AllowedOrigin) -> Result<()> {
    let host = host(&head.headers, &head.uri);
    let may_come = visitors == AllowedOrigin::Linked && is_followed_link(head);
    if may_come || !is_cross_site(&head.headers, host.as_deref()) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Forbidden, "A browser sent this for another web site; it is refused."))
}

/// Whether a user followed a link: the response is shown, and the other site cannot read it.
fn is_followed_link(head: &Parts) -> bool {
    let is = |name: &str, word: &str| head.headers.get(name).is_some_and(|value| value == word);
    matches!(head.method, Method::GET | Method::HEAD)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
        && !head.headers.contains_key(ORIGIN)
}

fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok());
    named.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str)).map(str::to_owned)
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_cross_site(headers: &HeaderMap, host: Option<&str>) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if sites.any(|site| site != "same-origin" && site != "none") {
        return true;
    }
    headers.get(ORIGIN).is_some_and(|origin| {
        let named = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        named.is_none() || named != host
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["127.0.0.1:7400", "127.9.9.9", "localhost:1", "LOCALHOST", "[::1]:7400", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["evil.example:7400", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]:1", "localhost.evil"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
