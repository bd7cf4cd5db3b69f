//! Headers that belong to one connection and end there.

use http::HeaderMap;
use http::header::{self, HeaderName};

/// Headers that `Connection` names as its own.
pub(crate) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter();
    let names = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    names.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok()).collect()
}

/// Whether a header ends with the connection.
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
    ALWAYS.contains(name) || name == "keep-alive" || name == "proxy-connection" || named.contains(name)
}
