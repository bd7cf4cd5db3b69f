//! The call that benchmarks over HTTP hand in, the upstream that it goes to, and the requests that hand it in. When and how
//! often they are sent is not known here.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::request;

/// What the upstream is called.
pub(crate) const UPSTREAM: &str = "sink";
/// An upstream that is never called.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";
/// Longer than any run.
const DELAY_MS: u64 = 3_600_000;

/// The upstream as a server is told of it; more may be said of it behind this.
pub(crate) fn upstream(base_url: &str) -> String {
    format!("[[upstream]]\nname = {UPSTREAM:?}\nbase_url = {base_url:?}\n")
}

/// A body of so many bytes.
pub(crate) fn body(len: usize) -> Value {
    // Two quotation marks are part of a body that is a JSON string.
    "x".repeat(len.saturating_sub(2)).into()
}

/// A call in the group of this number.
pub(crate) fn call(group: u64, body: &Value) -> Value {
    json!({
        "kind": "http",
        "upstream": UPSTREAM,
        "group": format!("group-{group}"),
        "request": { "method": "POST", "path": "/x", "headers": {}, "body": body },
    })
}

/// The same, to be accepted and never carried while a benchmark runs.
pub(crate) fn delayed(group: u64, body: &Value) -> Value {
    let mut call = call(group, body);
    call["delay_ms"] = DELAY_MS.into();
    call
}

/// The request that hands one in.
pub(crate) fn single(addr: SocketAddr, call: &Value) -> Vec<u8> {
    request(addr, "POST", "/v1/operations", &call.to_string())
}

/// The request that hands several in.
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
