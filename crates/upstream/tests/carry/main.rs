//! The HTTP dialect against real servers on loopback that respond, stall, cut and lie. The server
//! counts what arrives.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod answers;
mod limits;
mod once;
mod peer;
mod secrets;
mod unsent;

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::{Time, Verdict};
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::{Call, HttpUpstreams, Outcome, Upstream};

/// 1994-11-06 08:49:37 UTC.
const NOW: Time = Time::from_millis(784_111_777_000);

/// The timeout for a peer that stalls: enough to send on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// One upstream called `echo` at this address.
fn upstreams(base_url: impl Into<String>) -> HttpUpstreams {
    HttpUpstreams::new(vec![UpstreamConfig::new("echo", base_url)]).unwrap()
}

/// The same, with this timeout for a response.
fn hasty(base_url: impl Into<String>, timeout: Duration) -> HttpUpstreams {
    HttpUpstreams::new(vec![UpstreamConfig::new("echo", base_url).with_timeout(timeout)]).unwrap()
}

fn payload(request: &str) -> Vec<u8> {
    format!(r#"{{"upstream":"echo","request":{request}}}"#).into_bytes()
}

fn call<'a>(payload: &'a [u8], operation: &'a str) -> Call<'a> {
    Call::new(operation, payload, NOW)
}

/// Sends a request that passes the check, once.
async fn carry(upstreams: &HttpUpstreams, request: &str) -> Outcome {
    let payload = payload(request);
    upstreams.check(&payload, &BTreeMap::new()).unwrap();
    upstreams.carry(call(&payload, "op-1")).await
}

/// The message of a verdict.
fn message(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Throttled { fault, .. }
        | Verdict::Retry { fault, .. }
        | Verdict::Rejected(fault)
        | Verdict::PollFailed { fault, .. }
        | Verdict::Unknown(fault)
        | Verdict::Unavailable(fault)
        | Verdict::Lost(fault) => &fault.message,
        Verdict::Done | Verdict::Accepted { .. } | Verdict::Returned | Verdict::Canceled { .. } => "",
    }
}

fn text(outcome: &Outcome) -> &str {
    std::str::from_utf8(&outcome.body).unwrap()
}

const POST: &str = r#"{"method":"POST","path":"/x?key=hunter2","body":{"a":1}}"#;
const GET: &str = r#"{"method":"GET","path":"/x"}"#;
/// A host that needs no resolver: its label is longer than a name may be.
const NOBODY: &str = "http://nobody-nobody-nobody-nobody-nobody-nobody-nobody-nobody-nobody-nobody.invalid";
