//! The JSON of remote workers: what they ask for, the claims they get, and their reports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate::upstream::http::{response::Content, result};
use tidegate::upstream::{JobNote, Outcome};
use tidegate::{
    ClaimId, Fault, FaultClass, Fence, Hint, LeaseExtension, OnUnknown, RemoteClaim, Time, Verdict,
    WorkReceipt, WorkReport, WorkRequest,
};
use tidegate_core::bounds::{
    AWAIT_MAX, CHARGES_MAX, HORIZON_MAX, RESULT_LEN_MAX, TOKENS_MAX, WORK_BATCH_MAX,
};
use tidegate_core::operation::MICRO;

use super::error::ErrorEnvelope;
use super::field::Field;
use super::object::{Fields, ParsedObject, missing, read, read_list};
use super::problems::RequestProblems;
use super::time::Timestamp;
use crate::api::parse_id;
use crate::error::{Error, ErrorCode, Result};
use crate::work::{HandedClaim, RemoteKinds};

const TAKE: [&str; 4] = ["kinds", "max", "wait_ms", "lease_ms"];
const EXTEND: [&str; 3] = ["id", "fence", "lease_ms"];
const SETTLE: [&str; 13] = [
    "id",
    "fence",
    "outcome",
    "result",
    "response",
    "fault",
    "after_ms",
    "limit",
    "hints",
    "timeout_ms",
    "external_id",
    "memo",
    "may_have_happened",
];
const FAULT: [&str; 3] = ["class", "message", "may_have_happened"];
const HINT: [&str; 6] = ["limit", "remaining", "capacity", "refill_per_s", "reset_ms", "spent"];

/// The leases that workers may ask for, in milliseconds, and the one they get by default.
const LEASE_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;
const LEASE_MS_DEFAULT: u64 = 30_000;
/// How long a take may wait, in milliseconds, and how long it does by default.
const WAIT_MS: std::ops::RangeInclusive<u64> = 0..=60_000;
const WAIT_MS_DEFAULT: u64 = 20_000;
/// The times that workers may name, in milliseconds: a year.
const HORIZON_MS: std::ops::RangeInclusive<u64> = 0..=HORIZON_MAX.as_secs() * 1_000;
/// The largest fence: what every JSON parser reads exactly.
const FENCE_MAX: u64 = (1 << 53) - 1;
/// The most kinds in one take.
const KINDS_MAX: usize = 64;

/// The outcome that a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkOutcome {
    Succeeded,
    Failed,
    Rejected,
    Retry,
    Throttled,
    Unknown,
    Awaiting,
    Returned,
    Canceled,
}

const OUTCOMES: [(&str, WorkOutcome); 9] = [
    ("succeeded", WorkOutcome::Succeeded),
    ("failed", WorkOutcome::Failed),
    ("rejected", WorkOutcome::Rejected),
    ("retry", WorkOutcome::Retry),
    ("throttled", WorkOutcome::Throttled),
    ("unknown", WorkOutcome::Unknown),
    ("awaiting", WorkOutcome::Awaiting),
    ("returned", WorkOutcome::Returned),
    ("canceled", WorkOutcome::Canceled),
];

/// Parses a take: what is asked for, and how long it may wait.
pub(crate) fn parse_take(body: &[u8], known: &RemoteKinds) -> Result<(WorkRequest, Duration)> {
    let Fields { values, mut problems } = read(body, &TAKE)?;
    let field = |place: usize| Field { name: TAKE[place], raw: values[place] };
    let kinds = problems.check(parse_kinds(field(0), known));
    let max = problems.check(field(1).integer(1..=WORK_BATCH_MAX as u64)).unwrap_or(1);
    let wait = problems.check(field(2).integer(WAIT_MS)).unwrap_or(WAIT_MS_DEFAULT);
    let lease = problems.check(lease(field(3)));
    problems.finish()?;
    let max = usize::try_from(max).unwrap_or(1);
    Ok((WorkRequest { kinds, max, lease }, Duration::from_millis(wait)))
}

fn lease(field: Field<'_>) -> Result<Duration> {
    Ok(Duration::from_millis(field.integer(LEASE_MS)?.unwrap_or(LEASE_MS_DEFAULT)))
}

fn parse_kinds(field: Field<'_>, known: &RemoteKinds) -> Result<Vec<Arc<str>>> {
    let raw = field.raw.filter(|raw| raw.get() != "null").ok_or_else(|| missing(field.name))?;
    let kinds: Vec<String> = serde_json::from_str(raw.get()).map_err(|_| {
        Error::new(ErrorCode::Malformed, "The field \"kinds\" must be a list of strings.").field(field.name)
    })?;
    if kinds.is_empty() || kinds.len() > KINDS_MAX {
        let message = format!("The field \"kinds\" must name 1 to {KINDS_MAX} kinds.");
        return Err(Error::new(ErrorCode::Invalid, message).field(field.name));
    }
    if let Some(stranger) = kinds.iter().find(|kind| !known.contains(kind)) {
        let stranger = super::object::truncate_name(stranger);
        let names: Vec<&str> = known.names().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("Kind {stranger:?} is not left to remote workers; those that are: {names}.");
        return Err(Error::new(ErrorCode::UnknownKind, message).field(field.name));
    }
    Ok(kinds.into_iter().map(Arc::from).collect())
}

/// Parses claims to extend. Each is valid or not by itself.
pub(crate) fn parse_extend(body: &[u8]) -> Result<Vec<Result<(ClaimId, Duration)>>> {
    let items = read_list(body, "claims", WORK_BATCH_MAX, &EXTEND)?;
    Ok(items.into_iter().map(parse_extension).collect())
}

fn parse_extension(object: ParsedObject<'_, 3>) -> Result<(ClaimId, Duration)> {
    let Fields { values, mut problems } = object?;
    let field = |place: usize| Field { name: EXTEND[place], raw: values[place] };
    let claim = parse_claim(field(0), field(1), &mut problems);
    let lease = problems.check(lease(field(2)));
    problems.finish()?;
    Ok((claim.ok_or_else(|| missing("id"))?, lease))
}

/// Parses reports. Each is valid or not by itself.
pub(crate) fn parse_settle(body: &[u8], now: Time) -> Result<Vec<Result<WorkReport>>> {
    let items = read_list(body, "settlements", WORK_BATCH_MAX, &SETTLE)?;
    Ok(items.into_iter().map(|item| parse_settlement(item, now)).collect())
}

fn parse_claim(id: Field<'_>, fence: Field<'_>, problems: &mut RequestProblems) -> Option<ClaimId> {
    let id = problems.check(id.required_text().and_then(|text| parse_id(&text).map(Some)));
    let fence =
        fence.integer(0..=FENCE_MAX).and_then(|number| number.map(Some).ok_or_else(|| missing("fence")));
    Some(ClaimId { fence: Fence(problems.check(fence)?), id: id? })
}

fn parse_settlement(object: ParsedObject<'_, 13>, now: Time) -> Result<WorkReport> {
    let Fields { values, mut problems } = object?;
    let field = |place: usize| Field { name: SETTLE[place], raw: values[place] };
    let claim = parse_claim(field(0), field(1), &mut problems);
    let word = field(2).word(&OUTCOMES).and_then(|word| word.map(Some).ok_or_else(|| missing("outcome")));
    let outcome = problems.check(word);
    let body = problems.check(parse_result(field(3), field(4)));
    let fault = problems.check(parse_fault(field(5)));
    let after = problems.check(field(6).integer(HORIZON_MS)).map(Duration::from_millis);
    let scope = problems.check(field(7).text()).map(Arc::from);
    let hints = problems.check(parse_hints(field(8), now));
    let timeout = problems.check(field(9).integer(HORIZON_MS)).map_or(AWAIT_MAX, Duration::from_millis);
    let external_id = problems.check(field(10).text()).map(Arc::from);
    let memo = field(11).raw.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes())).unwrap_or_default();
    let may_have_happened = problems.check(field(12).flag()).unwrap_or(true);
    problems.finish()?;
    let (claim, outcome) = (claim.ok_or_else(|| missing("id"))?, outcome.ok_or_else(|| missing("outcome"))?);
    let fault = |class: FaultClass| fault.unwrap_or_else(|| Fault::new(class, "the worker gave no reason"));
    let verdict = match outcome {
        WorkOutcome::Succeeded => Verdict::Done,
        WorkOutcome::Failed | WorkOutcome::Rejected => Verdict::Rejected(fault(FaultClass::Validation)),
        WorkOutcome::Retry => Verdict::Retry { after, fault: fault(FaultClass::Transient) },
        WorkOutcome::Throttled => Verdict::Throttled { after, scope, fault: fault(FaultClass::RateLimited) },
        WorkOutcome::Unknown => match after {
            // Of a poll: asked again no sooner. Otherwise the two mean the same.
            Some(every) => Verdict::PollFailed { every, fault: fault(FaultClass::Transient) },
            None => Verdict::Unknown(fault(FaultClass::Transient)),
        },
        WorkOutcome::Awaiting => Verdict::Accepted { poll_after: after, timeout },
        WorkOutcome::Returned => Verdict::Returned,
        WorkOutcome::Canceled => Verdict::Canceled { may_have_happened },
    };
    let job = (outcome == WorkOutcome::Awaiting).then(|| JobNote { external_id, memo, cost: None });
    let outcome = Outcome::unanswered(verdict).with_hints(hints).with_body(body).with_job(job);
    Ok(WorkReport { claim, outcome })
}

/// The result to keep: a result of the worker as if it were the response of a service, or the whole
/// response of one.
fn parse_result(result: Field<'_>, response: Field<'_>) -> Result<Bytes> {
    let body = match (result.raw, response.raw.filter(|raw| raw.get() != "null")) {
        (Some(_), Some(_)) => {
            let message = "Either result or response can be given, not both.";
            return Err(Error::new(ErrorCode::Invalid, message).field(response.name));
        }
        (None, Some(_)) => Bytes::copy_from_slice(response.object()?.as_bytes()),
        (Some(raw), None) => stored_result(raw),
        (None, None) => Bytes::new(),
    };
    if body.len() > RESULT_LEN_MAX {
        let message = format!("The result is {} bytes long; the most is {RESULT_LEN_MAX}.", body.len());
        return Err(Error::new(ErrorCode::TooLarge, message).field(result.name));
    }
    Ok(body)
}

/// A result as if it were the response of a service.
pub(crate) fn stored_result(result: &RawValue) -> Bytes {
    encode_result(Some(200), result)
}

/// A result in the form of a response, with its status if it is to have one.
pub(crate) fn encode_result(status: Option<u16>, result: &RawValue) -> Bytes {
    let json = axum::http::HeaderValue::from_static("application/json");
    let headers = axum::http::HeaderMap::from_iter([(axum::http::header::CONTENT_TYPE, json)]);
    result::encode(status, &headers, Content::Whole(Bytes::copy_from_slice(result.get().as_bytes())))
}

/// Parses a fault; without a class it is that of a failure that is pointless to repeat.
pub(crate) fn parse_fault(field: Field<'_>) -> Result<Option<Fault>> {
    let Some(raw) = field.raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let Fields { values: [class, message, doubt], mut problems } = read(raw.get().as_bytes(), &FAULT)?;
    let class = problems.check(Field { name: "class", raw: class }.text());
    let message = problems.check(Field { name: "message", raw: message }.required_text());
    let doubt = problems.check(Field { name: "may_have_happened", raw: doubt }.flag()).unwrap_or(false);
    problems.finish()?;
    let class = match class {
        Some(word) => FaultClass::parse(&word).ok_or_else(|| {
            let known = FaultClass::ALL.map(FaultClass::as_str).join(", ");
            Error::new(ErrorCode::Invalid, format!("The class of a fault is one of {known}."))
                .field("fault.class")
        })?,
        None => FaultClass::Validation,
    };
    let fault = Fault::new(class, message);
    Ok(Some(if doubt { fault.in_doubt() } else { fault }))
}

fn parse_hints(field: Field<'_>, now: Time) -> Result<Vec<Hint>> {
    let Some(raw) = field.raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let wrong = || {
        Error::new(ErrorCode::Malformed, "The field \"hints\" must be a list of objects.").field(field.name)
    };
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| wrong())?;
    if items.len() > CHARGES_MAX {
        let message = format!("There are {} hints; the most is {CHARGES_MAX}.", items.len());
        return Err(Error::new(ErrorCode::Invalid, message).field(field.name));
    }
    items.into_iter().map(|item| parse_hint(read(item.get().as_bytes(), &HINT), now)).collect()
}

fn parse_hint(object: ParsedObject<'_, 6>, now: Time) -> Result<Hint> {
    let Fields { values, mut problems } = object?;
    let field = |place: usize| Field { name: HINT[place], raw: values[place] };
    let mut tokens = |place: usize| {
        let number = problems.check(field(place).figure(0.0..=TOKENS_MAX as f64));
        number.map(|number| (number * MICRO as f64).round() as u64)
    };
    let (remaining, capacity, refill_per_s, spent) = (tokens(1), tokens(2), tokens(3), tokens(5));
    let reset = problems.check(field(4).integer(HORIZON_MS));
    let limit = problems.check(field(0).required_text()).into();
    problems.finish()?;
    let reset_at = reset.map(|after| now.after(Duration::from_millis(after)));
    Ok(Hint { limit, remaining, capacity, refill_per_s, reset_at, spent })
}

/// A claim as a worker gets it.
#[derive(Serialize)]
struct ClaimOut<'a> {
    id: String,
    fence: u64,
    kind: &'a str,
    group: &'a str,
    attempt: u16,
    payload: &'a RawValue,
    lease_ms: u64,
    lease_until: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reconcile_first: bool,
    on_unknown: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_token: Option<&'a str>,
}

/// A job that was accepted before, and must not be started again.
#[derive(Serialize)]
struct JobOut<'a> {
    since: Timestamp,
    external_id: Option<&'a str>,
    memo: Option<&'a RawValue>,
    cancel_requested: bool,
}

/// Writes a claim for a worker; `None` when its payload is no JSON, which was checked before.
pub(crate) fn handed_claim(claim: &RemoteClaim) -> Option<HandedClaim> {
    let job = claim.job.as_ref().map(|job| JobOut {
        since: Timestamp(job.since),
        external_id: job.external_id.as_deref(),
        memo: serde_json::from_slice(&job.memo).ok(),
        cancel_requested: job.cancel_requested,
    });
    let out = ClaimOut {
        id: claim.claim.id.to_string(),
        fence: claim.claim.fence.0,
        kind: &claim.kind,
        group: &claim.group,
        attempt: claim.attempt,
        payload: serde_json::from_slice(&claim.payload).ok()?,
        lease_ms: u64::try_from(claim.lease.as_millis()).unwrap_or(u64::MAX),
        lease_until: Timestamp(claim.until),
        deadline_at: claim.deadline.map(Timestamp),
        reconcile_first: claim.reconcile_first,
        on_unknown: match claim.on_unknown {
            OnUnknown::Repeat => "repeat",
            OnUnknown::Reconcile => "reconcile",
            OnUnknown::Ask => "ask",
        },
        job,
        completion_token: claim.completion_token.as_deref(),
    };
    Some(HandedClaim { claim: claim.claim, json: serde_json::value::to_raw_value(&out).ok()? })
}

#[derive(Serialize)]
pub(crate) struct TakenOut {
    pub claims: Vec<Box<RawValue>>,
}

/// The answer about one claim.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum WorkItemOut {
    Extended { id: String, fence: u64, held: bool, lease_until: Option<Timestamp>, cancel_requested: bool },
    Settled { id: String, fence: u64, applied: bool, state: &'static str },
    Refused(Box<ErrorEnvelope>),
}

impl WorkItemOut {
    pub(crate) fn extended(claim: ClaimId, extension: LeaseExtension) -> Self {
        Self::Extended {
            id: claim.id.to_string(),
            fence: claim.fence.0,
            held: extension.until.is_some(),
            lease_until: extension.until.map(Timestamp),
            cancel_requested: extension.cancel_requested,
        }
    }

    pub(crate) fn settled(claim: ClaimId, receipt: WorkReceipt) -> Self {
        let WorkReceipt { applied, state } = receipt;
        Self::Settled { id: claim.id.to_string(), fence: claim.fence.0, applied, state: state.as_str() }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{OperationId, Seq};

    use super::*;

    fn kinds() -> RemoteKinds {
        RemoteKinds { custom: ["resize".to_owned()].into(), ..RemoteKinds::default() }
    }

    fn settle_one(more: &str) -> Result<WorkReport> {
        let id = OperationId::new(Time::from_millis(7), 0, Seq(1));
        let body = format!(r#"{{"settlements":[{{"id":"{id}","fence":3,{more}}}]}}"#);
        parse_settle(body.as_bytes(), Time::ZERO).unwrap().pop().unwrap()
    }

    #[test]
    fn a_take_is_read_or_refused_by_field() {
        let (request, wait) = parse_take(br#"{"kinds":["resize"]}"#, &kinds()).unwrap();
        assert_eq!((request.max, request.lease, wait), (1, Duration::from_secs(30), Duration::from_secs(20)));
        for (json, field) in [
            ("{}", "kinds"),
            (r#"{"kinds":[]}"#, "kinds"),
            (r#"{"kinds":"resize"}"#, "kinds"),
            (r#"{"kinds":["http"]}"#, "kinds"),
            (r#"{"kinds":["resize"],"max":0}"#, "max"),
            (r#"{"kinds":["resize"],"wait_ms":60001}"#, "wait_ms"),
            (r#"{"kinds":["resize"],"lease_ms":999}"#, "lease_ms"),
            (r#"{"kinds":["resize"],"lease":1}"#, "lease"),
        ] {
            let refused = parse_take(json.as_bytes(), &kinds()).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(field), "{json}");
        }
    }

    #[test]
    fn reports_are_read_or_refused_one_by_one() {
        let done = settle_one(r#""outcome":"succeeded","result":[1.10]"#).unwrap().outcome;
        assert_eq!(done.verdict, Verdict::Done);
        assert!(done.body.ends_with(br#""body":[1.10]}"#), "{:?}", done.body);
        let whole = settle_one(r#""outcome":"succeeded","response":{"status":204}"#).unwrap().outcome;
        assert_eq!(whole.body, r#"{"status":204}"#);
        let throttled = settle_one(r#""outcome":"throttled","after_ms":5,"limit":"slots""#).unwrap().outcome;
        assert!(matches!(
            throttled.verdict,
            Verdict::Throttled { after: Some(after), scope: Some(scope), .. }
                if after == Duration::from_millis(5) && &*scope == "slots"
        ));
        let awaiting =
            settle_one(r#""outcome":"awaiting","external_id":"j-1","memo":{"a":1}"#).unwrap().outcome;
        assert!(matches!(awaiting.verdict, Verdict::Accepted { poll_after: None, timeout: AWAIT_MAX }));
        assert_eq!(awaiting.job.unwrap().memo, r#"{"a":1}"#);
        let hints = settle_one(r#""outcome":"succeeded","hints":[{"limit":"a","remaining":2.5}]"#).unwrap();
        assert_eq!(hints.outcome.hints[0].remaining, Some(2_500_000));
        for (more, field) in [
            (r#""x":1"#, "x"),
            (r#""outcome":"done""#, "outcome"),
            (r#""result":1"#, "outcome"),
            (r#""outcome":"succeeded","result":1,"response":{}"#, "response"),
            (r#""outcome":"failed","fault":{"class":"odd","message":"x"}"#, "fault.class"),
            (r#""outcome":"retry","after_ms":-1"#, "after_ms"),
            (r#""outcome":"succeeded","hints":[{"remaining":1}]"#, "limit"),
        ] {
            assert_eq!(settle_one(more).unwrap_err().field.as_deref(), Some(field), "{more}");
        }
        let mixed = br#"{"settlements":[7,{"id":"op","fence":1,"outcome":"succeeded"}]}"#;
        assert!(parse_settle(mixed, Time::ZERO).unwrap().iter().all(Result::is_err));
        assert!(parse_settle(b"{}", Time::ZERO).is_err());
    }
}
