//! A response as it is saved for replays: status, relevant headers, body and trailers. What belongs
//! to one connection or one moment is left out.

mod codec;
mod sealing_keys;

pub(crate) use codec::{ResponseBinding, ResponseDecodeError, decode, encode};
pub use sealing_keys::{SealingKeyError, SealingKeys};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use tidegate_core::header_storage::check_storable;

use crate::hop_by_hop;

/// The saved part of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SavedResponse {
    /// The whole response.
    Buffered(BufferedResponse),
    /// The response was too large to be saved; only its status is known.
    TooLarge(StatusCode),
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BufferedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// The headers of a response that a replay has, repeated ones in their order. Never a cookie,
/// another credential or what may be one, which is one caller's and does not belong in a store;
/// never a date; nothing about the connection or how the body was split.
pub(crate) fn replayable_headers(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let is_kept = replay_filter(headers);
    let kept = headers.iter().filter(|(name, value)| is_kept(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The first header of a response that a replay does not have.
pub(crate) fn first_not_replayed(headers: &HeaderMap) -> Option<&HeaderName> {
    let is_kept = replay_filter(headers);
    headers.iter().find(|(name, value)| !is_kept(name, value)).map(|(name, _)| name)
}

/// Whether a replay has a header of a response with these.
fn replay_filter(headers: &HeaderMap) -> impl Fn(&HeaderName, &HeaderValue) -> bool + use<> {
    let named = hop_by_hop::named_by_connection(headers);
    move |name, value| {
        !hop_by_hop::is_hop_by_hop(name, &named) && !is_transient(name) && may_be_stored(name, value)
    }
}

/// The trailers of a response that a replay has.
pub(crate) fn replayable_trailers(trailers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in trailers.iter().filter(|(name, value)| may_be_stored(name, value)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

fn is_transient(name: &HeaderName) -> bool {
    [header::DATE, header::CONTENT_LENGTH].contains(name)
}

fn may_be_stored(name: &HeaderName, value: &HeaderValue) -> bool {
    check_storable(name.as_str(), value.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-19: no cookie, no other credential, no date, nothing of the connection; repeated headers
    /// in order, odd values byte for byte.
    #[test]
    fn a_repeat_gets_what_matters_and_nothing_of_the_moment() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("set-cookie", &b"session=1"[..]),
            ("set-cookie2", b"session=1"),
            ("x-vault-token", b"hunter2"),
            ("x-refreshed", b"Bearer hunter2"),
            ("x-grant", b"8f3aC1d2E4b5a697882746152433"),
            ("authentication-info", b"nextnonce=1"),
            ("date", b"Sun, 15 Nov 2026 10:00:00 GMT"),
            ("connection", b"keep-alive, X-Once"),
            ("keep-alive", b"timeout=5"),
            ("x-once", b"1"),
            ("transfer-encoding", b"chunked"),
            ("content-length", b"7"),
            ("link", b"</a>; rel=next"),
            ("cache-control", b"no-store"),
            ("x-odd", b"\xfe, \"a, b\""),
            ("link", b"</b>; rel=prev"),
        ] {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let kept = replayable_headers(&headers);
        let of = |name: &str| -> Vec<&[u8]> {
            kept.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_bytes()).collect()
        };
        assert_eq!(kept.len(), 4, "{kept:?}");
        assert_eq!(of("link"), [&b"</a>; rel=next"[..], b"</b>; rel=prev"]);
        assert_eq!(of("x-odd"), [b"\xfe, \"a, b\""]);
        assert_eq!(of("cache-control"), [b"no-store"]);
    }
}
