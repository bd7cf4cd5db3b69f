//! Rewrites the heads of requests and responses: addresses them to the upstream, adds where they
//! came from, and removes hop-by-hop headers. Everything else passes as it is.

use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, Version};

use super::ClientAddr;
use super::upstream::ProxyUpstream;
use crate::refusal::ERROR;
use crate::{hop_by_hop, key};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The protocol that a request asks to switch to, where that is allowed. A request with a key stays
/// a request, whose response can be saved; and HTTP/2 needs no upgrade.
pub(super) fn upgrade<B>(request: &Request<B>) -> Option<HeaderValue> {
    let has_key = request.headers().contains_key(key::HEADER);
    if request.version() != Version::HTTP_11 || has_key {
        return None;
    }
    hop_by_hop::upgrade_of(request.headers())
        .filter(|protocol| !protocol.as_bytes().eq_ignore_ascii_case(b"h2c"))
}

/// Rewrites a request for the upstream; `None` when its path cannot be forwarded.
pub(super) fn rewrite(
    parts: &mut Parts,
    upstream: &ProxyUpstream,
    upgrade: Option<HeaderValue>,
) -> Option<()> {
    let authority = parts.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let target = upstream.target(&parts.uri)?;
    let headers = &mut parts.headers;
    let takes_trailers = hop_by_hop::has_word(headers, &header::TE, "trailers");
    hop_by_hop::strip(headers);
    // The server has already answered it, as soon as the body was read.
    headers.remove(header::EXPECT);
    if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    match upgrade {
        Some(protocol) => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, protocol);
        }
        None if takes_trailers && upstream.is_http1() => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        }
        None => {}
    }
    let host = headers.remove(header::HOST).or(authority);
    if let Some(host) = host {
        headers.entry(FORWARDED_HOST).or_insert_with(|| host.clone());
        if upstream.preserve_host {
            headers.insert(header::HOST, host);
        }
    }
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
    if let Some(ClientAddr(peer)) = parts.extensions.get() {
        let peer = peer.ip().to_canonical().to_string();
        let earlier = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
        let all: Vec<&str> = earlier.chain([peer.as_str()]).collect();
        headers.insert(FORWARDED_FOR, HeaderValue::from_str(&all.join(", ")).ok()?);
    }
    parts.uri = target;
    // The protocol versions of the two connections are independent.
    parts.version = Version::HTTP_11;
    Some(())
}

/// Removes the hop-by-hop parts of a response, and what only this proxy may say.
pub(super) fn clean(parts: &mut http::response::Parts) {
    let upgrade =
        hop_by_hop::upgrade_of(&parts.headers).filter(|_| parts.status == StatusCode::SWITCHING_PROTOCOLS);
    hop_by_hop::strip(&mut parts.headers);
    parts.headers.remove(ERROR);
    if let Some(protocol) = upgrade {
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        parts.headers.insert(header::UPGRADE, protocol);
    }
    parts.version = Version::HTTP_11;
}
