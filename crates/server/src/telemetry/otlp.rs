//! Operations as spans of OTLP. One operation is one trace. Only names, states and times are in it;
//! no path, header, body or message of a fault, which may hold secrets.

mod span;

use std::time::Duration;

use tidegate::{EndedJourney, Journey, JourneyAttempt};
use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::{OperationId, State, Time};

use span::{
    Attribute, AttributeValue, ExportRequest, HexId, ResourceAttributes, ResourceSpans, SPAN_ID_LEN, Scope,
    ScopeSpans, Span, SpanEvent, SpanStatus, TRACE_ID_LEN, integer, text,
};

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

/// Returns the body of an export request, written without a tree of values between: every operation
/// that ends comes through here.
pub(super) fn encode(resource: &Resource, ended: &[EndedJourney]) -> serde_json::Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = vec![
        text("service.name", &resource.service_name),
        text("service.instance.id", &resource.node),
        text("service.version", version),
    ];
    let spans = ended.iter().flat_map(spans).collect();
    let scope_spans = [ScopeSpans { scope: Scope { name: "tidegate", version }, spans }];
    serde_json::to_string(&ExportRequest {
        resource_spans: [ResourceSpans { resource: ResourceAttributes { attributes }, scope_spans }],
    })
}

/// Makes the spans of one operation.
struct SpanMaker {
    trace: HexId<TRACE_ID_LEN>,
    /// A rerun of the same operation has other spans in the same trace.
    seed: Fingerprint,
    root: HexId<SPAN_ID_LEN>,
}

impl SpanMaker {
    fn new(ended: &EndedJourney) -> Self {
        let seed = Fingerprint::of("span")
            .part(ended.id.to_string().as_bytes())
            .part(&ended.journey.queued_at.as_micros().to_be_bytes());
        let root = span_id(&seed, "operation", 0);
        Self { trace: HexId(trace_id(ended.id)), seed, root }
    }

    /// A span below that of the operation.
    fn child<'a>(&self, name: &'static str, number: usize, kind: u8, (from, to): (Time, Time)) -> Span<'a> {
        Span {
            trace_id: self.trace,
            span_id: span_id(&self.seed, name, number),
            parent_span_id: Some(self.root),
            name,
            kind,
            start_time_unix_nano: from,
            end_time_unix_nano: to.max(from),
            attributes: Vec::new(),
            events: None,
            status: None,
        }
    }
}

fn span_id(seed: &Fingerprint, name: &str, number: usize) -> HexId<SPAN_ID_LEN> {
    let hash = seed.clone().part(name.as_bytes()).part(&number.to_be_bytes()).finish();
    let mut id = [0; SPAN_ID_LEN];
    id.copy_from_slice(&hash[..SPAN_ID_LEN]);
    HexId(id)
}

fn spans(ended: &EndedJourney) -> Vec<Span<'_>> {
    let (maker, journey) = (SpanMaker::new(ended), &ended.journey);
    let mut spans = vec![operation_span(&maker, ended)];
    if let Some(turn_at) = journey.turn_at.filter(|at| *at > journey.queued_at) {
        spans.push(maker.child("wait for turn", 0, INTERNAL, (journey.queued_at, turn_at)));
    }
    for (number, attempt) in journey.attempts.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| journey.attempts.get(before));
        spans.push(attempt_span(&maker, number, attempt, wait_before(journey, before, attempt)));
        if let (Some(from), Some(to)) = (attempt.accepted_at, attempt.ended_at) {
            spans.push(maker.child("completion", number, INTERNAL, (from, to)));
        }
    }
    spans
}

fn operation_span<'a>(maker: &SpanMaker, ended: &'a EndedJourney) -> Span<'a> {
    let journey = &ended.journey;
    let mut attributes = vec![
        Attribute { key: "tidegate.operation.id", value: AttributeValue::Id(ended.id) },
        text("tidegate.group", &ended.group),
        text("tidegate.kind", &ended.kind),
        text("tidegate.state", ended.state.as_str()),
        integer("tidegate.attempts", u64::from(ended.attempt)),
    ];
    attributes.extend(ended.request_id.as_deref().map(|id| text("tidegate.request_id", id)));
    attributes.extend(ended.fault.map(|class| text("error.type", class.as_str())));
    let code = match ended.state {
        State::Succeeded => Some(STATUS_OK),
        State::Failed => Some(STATUS_ERROR),
        _ => None,
    };
    Span {
        trace_id: maker.trace,
        span_id: maker.root,
        parent_span_id: None,
        name: "operation",
        kind: INTERNAL,
        start_time_unix_nano: journey.queued_at,
        end_time_unix_nano: journey.ended_at.unwrap_or(journey.queued_at).max(journey.queued_at),
        attributes,
        events: Some([SpanEvent { name: "accepted", time_unix_nano: journey.queued_at }]),
        status: code.map(|code| SpanStatus { code }),
    }
}

/// What an attempt waited for, as far as it is known, and for how long.
fn wait_before(
    journey: &Journey,
    before: Option<&JourneyAttempt>,
    attempt: &JourneyAttempt,
) -> Option<(&'static str, Duration)> {
    let (reason, since) = match before {
        // The attempt before it was throttled, is retried, or was returned.
        Some(before) => (before.result, before.ended_at),
        None => (Some("limit"), journey.turn_at.filter(|_| !journey.is_partial)),
    };
    let waited = since.map(|since| attempt.claimed_at.since(since));
    reason.zip(waited.filter(|waited| !waited.is_zero()))
}

fn attempt_span<'a>(
    maker: &SpanMaker,
    number: usize,
    attempt: &'a JourneyAttempt,
    wait: Option<(&'static str, Duration)>,
) -> Span<'a> {
    let from = attempt.sent_at.unwrap_or(attempt.claimed_at);
    let to = attempt.accepted_at.or(attempt.ended_at).unwrap_or(from);
    let mut attributes = vec![integer("tidegate.attempt", u64::from(attempt.number))];
    attributes.extend(attempt.upstream.as_deref().map(|upstream| text("tidegate.upstream", upstream)));
    attributes.extend(attempt.result.map(|result| text("tidegate.result", result)));
    let status = attempt.status.map(|status| integer("http.response.status_code", u64::from(status)));
    attributes.extend(status);
    attributes.extend(attempt.fault.map(|class| text("error.type", class.as_str())));
    if let Some((reason, waited)) = wait {
        let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        attributes.extend([text("tidegate.wait.reason", reason), integer("tidegate.wait.ms", millis)]);
    }
    let status = attempt.fault.map(|_| SpanStatus { code: STATUS_ERROR });
    Span { attributes, status, ..maker.child("attempt", number, CLIENT, (from, to)) }
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
}
