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
    if visitors == AllowedOrigin::Client && is_unexplained_visit(&head.headers) {
        let message = "A browser opened this over plain HTTP, where it does not say for which web site; \
                       it is refused. Call it from a program, or over HTTPS.";
        return Err(Error::new(ErrorCode::Forbidden, message));
    }
    let may_come = visitors == AllowedOrigin::Linked && is_followed_link(head);
    if may_come || !is_cross_site(&head.headers, host.as_deref()) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Forbidden, "A browser sent this for another web site; it is refused."))
}

/// Whether a browser opens a page without saying who asked for it. To an address that is neither
/// HTTPS nor this machine it sends no `Sec-Fetch-Site`, and with a link or a GET form no `Origin`
/// either, but it sends the login that it remembers.
fn is_unexplained_visit(headers: &HeaderMap) -> bool {
    headers.contains_key("upgrade-insecure-requests")
        && !headers.contains_key("sec-fetch-site")
        && !headers.contains_key(ORIGIN)
}

/// Whether a user followed a link: the response is shown, and the other site cannot read it.
fn is_followed_link(head: &Parts) -> bool {
    let is = |name: &str, word: &str| head.headers.get(name).is_some_and(|value| value == word);
    matches!(head.method, Method::GET | Method::HEAD)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
        && !head.headers.contains_key(ORIGIN)
}

/// The host that was called; none when there are two.
pub(crate) fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut all = headers.get_all(HOST).iter();
    let named = all.next().and_then(|host| host.to_str().ok());
    if all.next().is_some() {
        return None;
    }
    named.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str)).map(str::to_owned)
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
            _ => return false,
        },
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
        for host in [
            "evil.example:7400",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
            "[::2]:1",
            "localhost.evil",
            "[::1].evil.example",
            "[::1",
            "[::1]evil:1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    /// A link or a form on another site, to a name that is not this machine, over plain HTTP: the
    /// browser sends its remembered login and nothing that tells where it comes from.
    #[test]
    fn a_browser_that_does_not_say_for_whom_it_calls_is_refused() {
        let head = |headers: &[(&str, &str)]| {
            let request = axum::http::Request::get("/proxy/mine/x").header(HOST, "tidegate.lan:7400");
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            request.body(()).unwrap().into_parts().0
        };
        let opened = ("upgrade-insecure-requests", "1");
        let login = ("authorization", "Basic dTpw");
        let visit = head(&[opened, login]);
        assert!(reject_cross_site(&visit, AllowedOrigin::Client).is_err());
        assert!(reject_cross_site(&visit, AllowedOrigin::Own).is_ok(), "it can be looked at, and not read");
        assert!(reject_cross_site(&head(&[login]), AllowedOrigin::Client).is_ok(), "a program");
        let own = head(&[opened, ("sec-fetch-site", "same-origin")]);
        assert!(reject_cross_site(&own, AllowedOrigin::Client).is_ok());
        let twice = head(&[("host", "127.0.0.1")]);
        assert!(require_local_host(&twice).is_err(), "two hosts");
    }
}
