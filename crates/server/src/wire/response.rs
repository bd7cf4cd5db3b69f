//! The JSON that callers get: operations and reasons, groups and limits.

mod attempts;
mod details;
mod group;
mod limit;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tidegate::{
    CompletionReceipt, JourneyTimes, OperationDetails, OperationOutline, OperationView, Reason, Receipt,
};
use tidegate_core::{Fault, OperationId, State};

pub(crate) use group::{GroupOut, GroupsOut};
pub(crate) use limit::{LimitOut, LimitsOut, TokenAmount, source_word};

use super::error::ErrorEnvelope;
use super::time::Timestamp;
use attempts::{AttemptOut, all_attempts};
pub(crate) use details::RequestOut;
use details::RulesOut;

#[derive(Serialize)]
pub(crate) struct AcceptedOut<'a> {
    #[serde(serialize_with = "as_text")]
    pub id: OperationId,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'a str>,
    pub deduplicated: bool,
}

impl<'a> AcceptedOut<'a> {
    pub(crate) const fn new(receipt: Receipt, group: Option<&'a str>) -> Self {
        Self { id: receipt.id, state: receipt.state.as_str(), group, deduplicated: receipt.deduplicated }
    }
}

/// An operation of a submission that waited for its end.
#[derive(Serialize)]
pub(crate) struct AwaitedOperationOut<'a> {
    #[serde(flatten)]
    pub operation: OperationOut<'a>,
    pub deduplicated: bool,
}

/// One member of a batch: accepted, or its error.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum BatchItemOut {
    Accepted(AcceptedOut<'static>),
    Refused(Box<ErrorEnvelope>),
}

#[derive(Serialize)]
pub(crate) struct BatchOut {
    pub operations: Vec<BatchItemOut>,
}

#[derive(Serialize)]
pub(crate) struct OperationOut<'a> {
    #[serde(serialize_with = "as_text")]
    id: OperationId,
    state: &'static str,
    kind: &'a str,
    group: &'a str,
    attempt: u16,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Option<&'a RawValue>>,
    fault: Option<FaultOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<AttemptOut<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journey: Option<JourneyOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u16>,
    #[serde(flatten)]
    rules: Option<RulesOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl<'a> OperationOut<'a> {
    /// The operation with its result.
    pub(crate) fn whole(view: &'a OperationView) -> Self {
        let result = view.result.as_deref().and_then(|json| serde_json::from_slice(json).ok());
        let fingerprint = view.fingerprint.map(|hash| format!("{hash:032x}"));
        let (max_attempts, rules) = (Some(view.max_attempts), Some(RulesOut::new(&view.rules)));
        Self { result: Some(result), max_attempts, rules, fingerprint, ..Self::line(view) }
    }

    /// The operation with its result, its whole request and its attempts.
    pub(crate) fn detailed(view: &'a OperationView, details: &'a OperationDetails) -> Self {
        let request = details.request.as_ref().map(RequestOut::whole);
        let attempts =
            Some(all_attempts(&details.attempts, &details.seen_attempts, view.state == State::Failed));
        let journey = Some(JourneyOut::new(&details.journey));
        let completion = details.request.as_ref().and_then(|request| request.completion.as_deref());
        let completion = completion.and_then(|rules| serde_json::from_str(rules).ok());
        Self { request, attempts, journey, completion, ..Self::whole(view) }
    }

    /// Adds what the store knows of an operation that is shown from memory.
    fn add_outline(&mut self, outline: Option<&'a OperationOutline>) {
        let Some(outline) = outline else { return };
        self.upstream = outline.upstream.as_deref();
        self.request = outline.request.as_ref().map(RequestOut::line);
    }

    /// The operation as an item of a list.
    pub(crate) fn line(view: &'a OperationView) -> Self {
        Self {
            id: view.id,
            state: view.state.as_str(),
            kind: &view.kind,
            group: &view.group,
            attempt: view.attempt,
            created_at: Timestamp(view.created_at),
            finished_at: view.finished_at.map(Timestamp),
            result: None,
            fault: view.fault.as_ref().map(FaultOut::new),
            dedupe_key: view.dedupe_key.as_deref(),
            request_id: view.request_id.as_deref(),
            deployment_id: view.deployment_id.as_deref(),
            upstream: view.upstream.as_deref(),
            request: view.request.as_ref().map(RequestOut::line),
            attempts: None,
            journey: None,
            job_id: view.job_id.as_deref(),
            deadline_at: view.deadline_at.map(Timestamp),
            cancel_requested: view.cancel_requested,
            max_attempts: None,
            rules: None,
            completion: None,
            fingerprint: None,
        }
    }
}

/// How long an operation spent in each step, in milliseconds; null where that was not recorded.
#[derive(Serialize)]
pub(crate) struct JourneyOut {
    turn_ms: Option<u64>,
    limit_ms: Option<u64>,
    decision_ms: Option<u64>,
    sent_ms: Option<u64>,
    answer_ms: Option<u64>,
}

impl JourneyOut {
    fn new(times: &JourneyTimes) -> Self {
        let JourneyTimes { turn, limit, decision, sent, answer, .. } = *times;
        let [turn_ms, limit_ms, decision_ms, sent_ms, answer_ms] = [turn, limit, decision, sent, answer]
            .map(|time| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
        Self { turn_ms, limit_ms, decision_ms, sent_ms, answer_ms }
    }
}

/// The end of an operation, in an event.
#[derive(Serialize)]
pub(crate) struct EndOut<'a> {
    result: Option<&'a RawValue>,
    fault: Option<FaultOut<'a>>,
}

impl<'a> EndOut<'a> {
    pub(crate) fn new(view: &'a OperationView) -> Self {
        let result = view.result.as_deref().and_then(|json| serde_json::from_slice(json).ok());
        Self { result, fault: view.fault.as_ref().map(FaultOut::new) }
    }
}

#[derive(Serialize)]
pub(crate) struct FaultOut<'a> {
    class: &'static str,
    message: &'a str,
    may_have_happened: bool,
}

impl<'a> FaultOut<'a> {
    fn new(fault: &'a Fault) -> Self {
        let Fault { class, message, may_have_happened } = fault;
        Self { class: class.as_str(), message, may_have_happened: *may_have_happened }
    }
}

/// The answer to a completion: whether it was the end of the attempt, and the operation.
#[derive(Serialize)]
pub(crate) struct CompletionOut<'a> {
    applied: bool,
    #[serde(flatten)]
    operation: OperationOut<'a>,
}

impl<'a> CompletionOut<'a> {
    pub(crate) fn new(receipt: &'a CompletionReceipt) -> Self {
        Self { applied: receipt.applied, operation: OperationOut::whole(&receipt.operation) }
    }
}

#[derive(Serialize)]
pub(crate) struct PageOut<'a> {
    pub operations: Vec<OperationOut<'a>>,
    pub next_cursor: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct WhyOut<'a> {
    waiting_for: &'static str,
    name: Option<&'a str>,
    until: Option<Timestamp>,
    starts_at: Option<Timestamp>,
    behind: Option<String>,
    because: &'a str,
}

impl<'a> WhyOut<'a> {
    pub(crate) fn new(reason: &'a Reason) -> Self {
        Self {
            waiting_for: reason.waiting_for,
            name: reason.name.as_deref(),
            until: reason.until.map(Timestamp),
            starts_at: reason.starts_at.map(Timestamp),
            behind: reason.behind.map(|id| id.to_string()),
            because: &reason.because,
        }
    }
}

fn as_text<S: Serializer>(id: &OperationId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}
