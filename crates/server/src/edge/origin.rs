//! Keeps other web sites out: a browser on this machine can reach the API, and whatever page it shows may try. A
//! change that a browser sends for another site is refused, and without tokens so is a name that is not this machine.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error};

use crate::app::House;
use crate::wire::failure::Failure;

pub(crate) async fn layer(State(house): State<Arc<House>>, request: Request, next: Next) -> Response {
    keep_out(house.tokens.is_empty(), request, next).await
}

/// The same for a door that has no tokens and is on this machine only.
pub(crate) async fn local(request: Request, next: Next) -> Response {
    keep_out(true, request, next).await
}

async fn keep_out(is_local: bool, request: Request, next: Next) -> Response {
    let host = host(request.headers(), request.uri());
    if is_local && !host.as_deref().is_some_and(is_this_machine) {
        let message = "Without a token this server answers only to 127.0.0.1, [::1] and localhost.";
        return Failure(Error::new(Code::Forbidden, message)).into_response();
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && is_foreign(request.headers(), host.as_deref()) {
        let message = "A browser sent this for another web site; it is refused.";
        return Failure(Error::new(Code::Forbidden, message)).into_response();
    }
    next.run(request).await
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

fn is_foreign(headers: &HeaderMap, host: Option<&str>) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
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
