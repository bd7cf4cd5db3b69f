//! The call that benchmarks submit over HTTP, its upstream, and the requests that submit it. When
//! and how often they are sent is not known here.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::request;

/// The name of the upstream.
pub(crate) const UPSTREAM: &str = "sink";
/// An upstream that is never called.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";
/// Longer than any run.
const DELAY_MS: u64 = 3_600_000;

/// Returns the upstream's configuration for a server; more settings may be appended.
pub(crate) fn upstream(base_url: &str) -> String {
    format!("[[upstream]]\nname = {UPSTREAM:?}\nbase_url = {base_url:?}\n")
}

/// Returns a body of this many bytes.
pub(crate) fn body(len: usize) -> Value {
    // A body that is a JSON string includes its two quotation marks.
    "x".repeat(len.saturating_sub(2)).into()
}

/// Returns a call in the group with this number.
pub(crate) fn call(group: u64, body: &Value) -> Value {
    json!({
        "kind": "http",
        "upstream": UPSTREAM,
        "group": format!("group-{group}"),
        "request": { "method": "POST", "path": "/x", "headers": {}, "body": body },
    })
}

/// Returns the same call, accepted but never sent while a benchmark runs.
pub(crate) fn delayed(group: u64, body: &Value) -> Value {
    let mut call = call(group, body);
    call["delay_ms"] = DELAY_MS.into();
    call
}

/// Returns the request that submits one call.
pub(crate) fn single(addr: SocketAddr, call: &Value) -> Vec<u8> {
    request(addr, "POST", "/v1/operations", &call.to_string())
}

/// Returns the request that submits several calls.
pub(crate) fn batch(addr: SocketAddr, calls: &[Value]) -> Vec<u8> {
    request(addr, "POST", "/v1/operations/batch", &json!({ "operations": calls }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_asked_on_the_wire() {
        assert_eq!(body(512).to_string().len(), 512);
        assert_eq!(body(0).to_string().len(), 2);
    }
}
