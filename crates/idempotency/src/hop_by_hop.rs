//! Hop-by-hop headers, which belong to one connection.

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};

/// The headers that `Connection` names as hop-by-hop.
pub(crate) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    words(headers, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect()
}

/// Returns whether a header is hop-by-hop.
pub(crate) fn is_hop_by_hop(name: &HeaderName, named: &[HeaderName]) -> bool {
    const ALWAYS: [HeaderName; 7] = [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    ALWAYS.contains(name)
        || name == "keep-alive"
        || name == "proxy-connection"
        || name == "http2-settings"
        || named.contains(name)
}

/// Returns whether a list header contains this word, ignoring case.
pub(crate) fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word))
}

/// Removes the hop-by-hop headers. `Trailer` stays: trailers are passed on, and HTTP/1.1 sends only
/// those that were announced.
pub fn strip(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    let ends: Vec<HeaderName> = headers
        .keys()
        .filter(|name| **name != header::TRAILER && is_hop_by_hop(name, &named))
        .cloned()
        .collect();
    for name in ends {
        headers.remove(name);
    }
}

/// The protocol that a message asks to switch to, as `Upgrade` names it.
pub(crate) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = has_word(headers, &header::CONNECTION, "upgrade");
    headers.get(header::UPGRADE).filter(|_| asked).cloned()
}

/// The words of a list header, over all of its lines, without their parameters.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|word| word.split(';').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers
    }

    /// IDM-12: hop-by-hop headers do not pass; announced trailers do.
    #[test]
    fn what_ends_with_the_connection_is_taken_out() {
        let mut some = headers(&[
            ("connection", "close, X-Once"),
            ("connection", "x-twice"),
            ("x-once", "1"),
            ("x-twice", "2"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "Basic eA=="),
            ("trailer", "x-sum"),
            ("content-type", "text/plain"),
        ]);
        strip(&mut some);
        let mut left: Vec<_> = some.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "trailer"]);
    }

    #[test]
    fn words_of_a_list_are_found_in_any_case() {
        let some = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("te", "gzip;q=1, Trailers"),
        ]);
        assert_eq!(upgrade_of(&some).unwrap(), "websocket");
        assert!(has_word(&some, &header::TE, "trailers") && !has_word(&some, &header::TE, "zip"));
        assert_eq!(upgrade_of(&headers(&[("upgrade", "websocket")])), None, "nobody asked the connection");
    }
}
