//! The JSON encoding of OTLP: ids in hexadecimal, times in nanoseconds and 64-bit numbers as texts,
//! enumerations as numbers. What is in a span is not decided here.

use std::fmt;

use serde::{Serialize, Serializer};
use tidegate_core::{OperationId, Time};

pub(super) const TRACE_ID_LEN: usize = 16;
pub(super) const SPAN_ID_LEN: usize = 8;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportRequest<'a> {
    pub resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans<'a> {
    pub resource: ResourceAttributes<'a>,
    pub scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
pub(super) struct ResourceAttributes<'a> {
    pub attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
pub(super) struct ScopeSpans<'a> {
    pub scope: Scope,
    pub spans: Vec<Span<'a>>,
}

#[derive(Serialize)]
pub(super) struct Scope {
    pub name: &'static str,
    pub version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span<'a> {
    pub trace_id: HexId<TRACE_ID_LEN>,
    pub span_id: HexId<SPAN_ID_LEN>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<HexId<SPAN_ID_LEN>>,
    pub name: &'static str,
    pub kind: u8,
    #[serde(serialize_with = "as_nanos")]
    pub start_time_unix_nano: Time,
    #[serde(serialize_with = "as_nanos")]
    pub end_time_unix_nano: Time,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<[SpanEvent; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SpanStatus>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanEvent {
    pub name: &'static str,
    #[serde(serialize_with = "as_nanos")]
    pub time_unix_nano: Time,
}

#[derive(Serialize)]
pub(super) struct SpanStatus {
    pub code: u8,
}

#[derive(Serialize)]
pub(super) struct Attribute<'a> {
    pub key: &'static str,
    pub value: AttributeValue<'a>,
}

#[derive(Serialize)]
pub(super) enum AttributeValue<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "stringValue", serialize_with = "as_text")]
    Id(OperationId),
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Integer(u64),
}

/// The bytes of an id, in hexadecimal.
#[derive(Clone, Copy)]
pub(super) struct HexId<const LEN: usize>(pub [u8; LEN]);

impl<const LEN: usize> fmt::Display for HexId<LEN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const LEN: usize> Serialize for HexId<LEN> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn as_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_nanos<S: Serializer>(at: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    as_text(&(u128::from(at.as_micros()) * 1_000), serializer)
}

pub(super) const fn text<'a>(key: &'static str, value: &'a str) -> Attribute<'a> {
    Attribute { key, value: AttributeValue::Text(value) }
}

pub(super) const fn integer<'a>(key: &'static str, value: u64) -> Attribute<'a> {
    Attribute { key, value: AttributeValue::Integer(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_are_written_as_the_encoding_asks() {
        let event = SpanEvent { name: "accepted", time_unix_nano: Time::from_millis(1_794_737_805_458) };
        let event = serde_json::to_value(event).unwrap();
        assert_eq!(event["timeUnixNano"], "1794737805458000000");
        let attribute = serde_json::to_value(integer("a", u64::MAX)).unwrap();
        assert_eq!(attribute["value"]["intValue"], "18446744073709551615");
        assert_eq!(serde_json::to_value(text("a", "b")).unwrap()["value"]["stringValue"], "b");
        assert_eq!(serde_json::to_value(HexId([0, 10, 255])).unwrap(), "000aff");
    }
}
