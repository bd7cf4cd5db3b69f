//! The request of an operation and the rules it was submitted with, in JSON.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate::SubmissionRules;
use tidegate::upstream::{BodyView, RequestLine, RequestView};
use tidegate_core::{OnFailure, OnUnknown};

/// What an operation asks its upstream for.
#[derive(Default, Serialize)]
pub(crate) struct RequestOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<HeadersOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<BodyOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_bytes: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    body_truncated: bool,
}

/// What an operation was submitted with; what the submission left out has its default.
#[derive(Serialize)]
pub(super) struct RulesOut<'a> {
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<&'a BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_unknown: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<&'static str>,
}

impl<'a> RulesOut<'a> {
    pub(super) fn new(rules: &'a SubmissionRules) -> Self {
        Self {
            priority: rules.priority,
            cost: Some(&rules.cost).filter(|cost| !cost.is_empty()),
            on_unknown: rules.on_unknown.map(OnUnknown::as_str),
            on_failure: rules.on_failure.map(OnFailure::as_str),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum BodyOut<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

impl<'a> RequestOut<'a> {
    /// Its start, for lists.
    pub(super) fn line(line: &'a RequestLine) -> Self {
        Self { method: Some(line.method), path: Some(&line.path), ..Self::default() }
    }

    /// All that may be shown.
    pub(crate) fn whole(view: &'a RequestView) -> Self {
        let line = view.line.as_ref().map(Self::line).unwrap_or_default();
        let body = view.body.as_ref();
        Self {
            query: view.query.as_deref(),
            headers: view.line.as_ref().map(|_| HeadersOut(&view.headers)),
            body: body.and_then(BodyOut::new),
            body_bytes: body.and_then(|body| body.len),
            body_truncated: body.is_some_and(|body| body.is_truncated),
            ..line
        }
    }
}

impl<'a> BodyOut<'a> {
    fn new(body: &'a BodyView) -> Option<Self> {
        let text = body.text.as_deref()?;
        // A number beyond what clients can read would keep them from reading all of the operation.
        let is_readable = body.is_json && serde_json::from_str::<Value>(text).is_ok();
        let json = if is_readable { serde_json::from_str(text).ok() } else { None };
        Some(json.map_or(Self::Text(text), Self::Json))
    }
}

/// Headers as an object, in order.
struct HeadersOut<'a>(&'a [(String, String)]);

impl Serialize for HeadersOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-23: JSON is shown as JSON, the beginning of it as text.
    #[test]
    fn ops_23_a_body_is_json_if_it_is_whole() {
        let whole = RequestView::of_payload(br#"{"n":12345678901234567890123}"#);
        let shown = serde_json::to_string(&RequestOut::whole(&whole)).unwrap();
        assert_eq!(shown, r#"{"body":{"n":12345678901234567890123},"body_bytes":29}"#);
        let long = format!(r#"{{"n":"{}"}}"#, "x".repeat(100_000));
        let long = RequestView::of_payload(long.as_bytes());
        let shown = serde_json::to_string(&RequestOut::whole(&long)).unwrap();
        assert!(shown.starts_with(r#"{"body":"{\"n\":\"xxx"#), "{shown}");
        assert!(shown.ends_with(r#"x","body_bytes":100008,"body_truncated":true}"#), "{shown}");
        let beyond = RequestView::of_payload(br#"{"n":1e400}"#);
        let shown = serde_json::to_string(&RequestOut::whole(&beyond)).unwrap();
        assert_eq!(shown, r#"{"body":"{\"n\":1e400}","body_bytes":11}"#);
    }
}
