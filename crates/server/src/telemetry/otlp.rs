//! Operations as spans in the JSON encoding of OTLP: ids in hexadecimal, times in nanoseconds and
//! 64-bit numbers as texts, enumerations as numbers. One operation is one trace. Only names, states
//! and times are in it; no path, header, body or message of a fault, which may hold secrets.

use serde_json::{Value, json};
use tidegate::{EndedJourney, Journey, JourneyAttempt};
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::{OperationId, State, Time};

const TRACE_ID_LEN: usize = 16;
const SPAN_ID_LEN: usize = 8;
/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const STATUS_OK: u8 = 1;
const STATUS_ERROR: u8 = 2;
/// The bits of a trace id that samplers compare.
const RANDOM_BITS: u32 = 56;

/// The id of an operation's trace: a hash of the operation's id, the same on every node.
pub(super) fn trace_id(id: OperationId) -> [u8; TRACE_ID_LEN] {
    Fingerprint::of("trace").part(id.to_string().as_bytes()).short().to_be_bytes()
}

/// Whether a trace is among the sampled ones: every node and every service decides the same.
pub(super) fn is_sampled(trace: [u8; TRACE_ID_LEN], ratio: f64) -> bool {
    let random = u128::from_be_bytes(trace) as u64 & ((1 << RANDOM_BITS) - 1);
    (random as f64) < ratio * (1_u64 << RANDOM_BITS) as f64
}

/// The service that spans come from.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub service_name: String,
    pub node: String,
}

/// The body of an export request.
pub(super) fn encode(resource: &Resource, ended: &[EndedJourney]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = [
        text("service.name", &resource.service_name),
        text("service.instance.id", &resource.node),
        text("service.version", version),
    ];
    let spans: Vec<Value> = ended.iter().flat_map(spans).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes },
        "scopeSpans": [{ "scope": { "name": "tidegate", "version": version }, "spans": spans }],
    }] })
}

/// Makes the spans of one operation.
struct SpanMaker {
    trace: String,
    /// A rerun of the same operation has other spans in the same trace.
    seed: Fingerprint,
    root: String,
}

impl SpanMaker {
    fn new(ended: &EndedJourney) -> Self {
        let seed = Fingerprint::of("span")
            .part(ended.id.to_string().as_bytes())
            .part(&ended.journey.queued_at.as_micros().to_be_bytes());
        let mut maker = Self { trace: hex(&trace_id(ended.id)), seed, root: String::new() };
        maker.root = maker.span_id("operation", 0);
        maker
    }

    fn span_id(&self, name: &str, number: usize) -> String {
        let id = self.seed.clone().part(name.as_bytes()).part(&number.to_be_bytes()).finish();
        hex(&id[..SPAN_ID_LEN])
    }

    /// A span below that of the operation.
    fn child(&self, name: &str, number: usize, kind: u8, (from, to): (Time, Time)) -> Value {
        json!({
            "traceId": self.trace,
            "spanId": self.span_id(name, number),
            "parentSpanId": self.root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": nanos(from),
            "endTimeUnixNano": nanos(to.max(from)),
        })
    }
}

fn spans(ended: &EndedJourney) -> Vec<Value> {
    let (maker, journey) = (SpanMaker::new(ended), &ended.journey);
    let mut spans = vec![operation_span(&maker, ended)];
    if let Some(turn_at) = journey.turn_at.filter(|at| *at > journey.queued_at) {
        spans.push(maker.child("wait for turn", 0, INTERNAL, (journey.queued_at, turn_at)));
    }
    for (number, attempt) in journey.attempts.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| journey.attempts.get(before));
        spans.push(attempt_span(&maker, number, attempt, &wait_before(journey, before, attempt)));
        if let (Some(from), Some(to)) = (attempt.accepted_at, attempt.ended_at) {
            spans.push(maker.child("completion", number, INTERNAL, (from, to)));
        }
    }
    spans
}

fn operation_span(maker: &SpanMaker, ended: &EndedJourney) -> Value {
    let journey = &ended.journey;
    let end = journey.ended_at.unwrap_or(journey.queued_at).max(journey.queued_at);
    let mut attributes = vec![
        text("tidegate.operation.id", &ended.id.to_string()),
        text("tidegate.group", &ended.group),
        text("tidegate.kind", &ended.kind),
        text("tidegate.state", ended.state.as_str()),
        integer("tidegate.attempts", u64::from(ended.attempt)),
    ];
    attributes.extend(ended.request_id.as_deref().map(|id| text("tidegate.request_id", id)));
    attributes.extend(ended.fault.map(|class| text("error.type", class.as_str())));
    let mut span = json!({
        "traceId": maker.trace,
        "spanId": maker.root,
        "name": "operation",
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(journey.queued_at),
        "endTimeUnixNano": nanos(end),
        "attributes": attributes,
        "events": [{ "name": "accepted", "timeUnixNano": nanos(journey.queued_at) }],
    });
    match ended.state {
        State::Succeeded => span["status"] = json!({ "code": STATUS_OK }),
        State::Failed => span["status"] = json!({ "code": STATUS_ERROR }),
        _ => {}
    }
    span
}

/// What an attempt waited for, as far as it is known, and for how long.
fn wait_before(journey: &Journey, before: Option<&JourneyAttempt>, attempt: &JourneyAttempt) -> Vec<Value> {
    let (reason, since) = match before {
        // The attempt before it was throttled, is retried, or was returned.
        Some(before) => (before.result, before.ended_at),
        None => (Some("limit"), journey.turn_at.filter(|_| !journey.is_partial)),
    };
    let waited = since.map(|since| attempt.claimed_at.since(since));
    let waited = waited.filter(|waited| !waited.is_zero()).zip(reason);
    let millis = |waited: std::time::Duration| u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    waited.map_or_else(Vec::new, |(waited, reason)| {
        vec![text("tidegate.wait.reason", reason), integer("tidegate.wait.ms", millis(waited))]
    })
}

fn attempt_span(maker: &SpanMaker, number: usize, attempt: &JourneyAttempt, wait: &[Value]) -> Value {
    let from = attempt.sent_at.unwrap_or(attempt.claimed_at);
    let to = attempt.accepted_at.or(attempt.ended_at).unwrap_or(from);
    let mut span = maker.child("attempt", number, CLIENT, (from, to));
    let mut attributes = vec![integer("tidegate.attempt", u64::from(attempt.number))];
    attributes.extend(attempt.upstream.as_deref().map(|upstream| text("tidegate.upstream", upstream)));
    attributes.extend(attempt.result.map(|result| text("tidegate.result", result)));
    let status = attempt.status.map(|status| integer("http.response.status_code", u64::from(status)));
    attributes.extend(status);
    attributes.extend(attempt.fault.map(|class| text("error.type", class.as_str())));
    attributes.extend_from_slice(wait);
    span["attributes"] = Value::Array(attributes);
    if attempt.fault.is_some() {
        span["status"] = json!({ "code": STATUS_ERROR });
    }
    span
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn integer(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Time) -> String {
    (u128::from(at.as_micros()) * 1_000).to_string()
}

#[cfg(test)]
mod tests {
    use tidegate_core::Seq;

    use super::*;

    /// Traces are sampled by their id, so that all nodes agree, and in the share that is asked for.
    #[test]
    fn a_share_of_the_traces_is_sampled() {
        let ids = (0..10_000).map(|seq| OperationId::new(Time::from_millis(7), 3, Seq(seq)));
        let traces: Vec<_> = ids.map(trace_id).collect();
        for (ratio, least, most) in [(0.0, 0, 0), (0.1, 850, 1_150), (1.0, 10_000, 10_000)] {
            let sampled = traces.iter().filter(|trace| is_sampled(**trace, ratio)).count();
            assert!((least..=most).contains(&sampled), "{ratio}: {sampled}");
        }
        let (few, many) = (0.1, 0.5);
        assert!(traces.iter().all(|trace| !is_sampled(*trace, few) || is_sampled(*trace, many)));
    }

    #[test]
    fn numbers_are_written_as_the_encoding_asks() {
        assert_eq!(nanos(Time::from_millis(1_794_737_805_458)), "1794737805458000000");
        assert_eq!(integer("a", u64::MAX)["value"]["intValue"], "18446744073709551615");
    }
}
