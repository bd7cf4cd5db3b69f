//! The JSON of remote workers: what they ask for, the claims they get, and their reports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate::upstream::http::{response::Content, result};
use tidegate::upstream::{JobNote, Outcome};
use tidegate::{
    ClaimId, Fault, FaultClass, Fence, Hint, LeaseExtension, RemoteClaim, Time, Verdict, WorkReceipt,
    WorkReport, WorkRequest,
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
/// How long a job may be awaited, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=AWAIT_MAX.as_secs() * 1_000;
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

impl WorkOutcome {
    /// The class of a fault that names none.
    const fn default_class(self) -> FaultClass {
        match self {
            Self::Failed | Self::Rejected => FaultClass::Validation,
            Self::Throttled => FaultClass::RateLimited,
            _ => FaultClass::Transient,
        }
    }
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
    if let Some(unknown_kind) = kinds.iter().find(|kind| !known.contains(kind)) {
        let unknown_kind = super::object::truncate_name(unknown_kind);
        let names: Vec<&str> = known.names().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message =
            format!("Kind {unknown_kind:?} is not left to remote workers; those that are: {names}.");
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
    let class = outcome.map_or(FaultClass::Transient, WorkOutcome::default_class);
    let fault = problems.check(parse_fault(field(5), class));
    let after = problems.check(field(6).integer(HORIZON_MS)).map(Duration::from_millis);
    let scope = problems.check(field(7).text()).map(Arc::from);
    let hints = problems.check(parse_hints(field(8), now));
    let timeout = problems.check(field(9).integer(TIMEOUT_MS)).map_or(AWAIT_MAX, Duration::from_millis);
    let external_id = problems.check(field(10).text()).map(Arc::from);
    let memo = field(11).raw.map(stored_memo).unwrap_or_default();
    let may_have_happened = problems.check(field(12).flag()).unwrap_or(true);
    problems.finish()?;
    let (claim, outcome) = (claim.ok_or_else(|| missing("id"))?, outcome.ok_or_else(|| missing("outcome"))?);
    let fault = || fault.unwrap_or_else(|| Fault::new(class, "the worker gave no reason"));
    let verdict = match outcome {
        WorkOutcome::Succeeded => Verdict::Done,
        WorkOutcome::Failed | WorkOutcome::Rejected => Verdict::Rejected(fault()),
        WorkOutcome::Retry => Verdict::Retry { after, fault: fault() },
        WorkOutcome::Throttled => Verdict::Throttled { after, scope, fault: fault() },
        WorkOutcome::Unknown => match after {
            // Of a poll: asked again no sooner. Otherwise the two mean the same.
            Some(every) => Verdict::PollFailed { every, fault: fault() },
            None => Verdict::Unknown(fault()),
        },
        WorkOutcome::Awaiting => Verdict::Accepted { poll_after: after, timeout },
        WorkOutcome::Returned => Verdict::Returned,
        WorkOutcome::Canceled => Verdict::Canceled { may_have_happened },
    };
    // What is known of a job stays when a later report leaves it out.
    let has_note = outcome == WorkOutcome::Awaiting && (external_id.is_some() || !memo.is_empty());
    let job = has_note.then(|| JobNote { external_id, memo, cost: None });
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

/// Parses a fault, of this class unless it names another.
pub(crate) fn parse_fault(field: Field<'_>, default: FaultClass) -> Result<Option<Fault>> {
    let Some(raw) = field.raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let fields = read(raw.get().as_bytes(), &FAULT).map_err(|error| error.field(field.name))?;
    let Fields { values: [class, message, doubt], mut problems } = fields;
    let class = problems.check(Field { name: "fault.class", raw: class }.text());
    let message = problems.check(Field { name: "fault.message", raw: message }.required_text());
    let doubt = Field { name: "fault.may_have_happened", raw: doubt }.flag();
    let doubt = problems.check(doubt).unwrap_or(false);
    problems.finish()?;
    let class = match class {
        Some(word) => FaultClass::parse(&word).ok_or_else(|| {
            let known = FaultClass::ALL.map(FaultClass::as_str).join(", ");
            Error::new(ErrorCode::Invalid, format!("The class of a fault is one of {known}."))
                .field("fault.class")
        })?,
        None => default,
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
    let hints = items.into_iter().map(|item| parse_hint(read(item.get().as_bytes(), &HINT), now));
    let of_list = |(place, hint): (usize, Result<Hint>)| {
        hint.map_err(|error| {
            let name = error.field.as_deref().map_or_else(String::new, |name| format!(".{name}"));
            error.field(format!("hints[{place}]{name}"))
        })
    };
    hints.enumerate().map(of_list).collect()
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
    if capacity == Some(0) {
        let message = "The field \"capacity\" must be above 0.";
        problems.add(Error::new(ErrorCode::Invalid, message).field("capacity"));
    }
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_doubt: bool,
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
    memo: Option<Box<RawValue>>,
    cancel_requested: bool,
}

/// Writes a claim for a worker; `None` when its payload is no JSON, which was checked before.
pub(crate) fn handed_claim(claim: &RemoteClaim) -> Option<HandedClaim> {
    let job = claim.job.as_ref().map(|job| JobOut {
        since: Timestamp(job.since),
        external_id: job.external_id.as_deref(),
        memo: memo_json(&job.memo),
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
        in_doubt: claim.in_doubt,
        on_unknown: claim.on_unknown.as_str(),
        job,
        completion_token: claim.completion_token.as_deref(),
    };
    Some(HandedClaim { claim: claim.claim, json: serde_json::value::to_raw_value(&out).ok()? })
}

/// A memo as it is stored: a string that is no JSON itself is stored as what it says, as executors
/// of this server store theirs; see [`memo_json`].
fn stored_memo(memo: &RawValue) -> Bytes {
    let text = serde_json::from_str::<String>(memo.get()).unwrap_or_default();
    let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
    match text.is_empty() || is_json {
        true => Bytes::copy_from_slice(memo.get().as_bytes()),
        false => text.into(),
    }
}

/// A memo as a worker gets it: as JSON, or as a string when it is none.
fn memo_json(memo: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(memo).ok().filter(|text| !text.is_empty())?;
    let json = serde_json::from_str::<Box<RawValue>>(text);
    json.or_else(|_| serde_json::value::to_raw_value(text)).ok()
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
    Refused(RefusedOut),
}

/// A member that was refused, with the claim that it names.
#[derive(Serialize)]
pub(crate) struct RefusedOut {
    #[serde(flatten)]
    claim: NamedClaim,
    #[serde(flatten)]
    error: Box<ErrorEnvelope>,
}

/// The claim that a member of a batch names, as far as it can be read.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct NamedClaim {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
}

impl NamedClaim {
    /// Reads the claim of a member, whatever is wrong with it.
    pub(crate) fn of_member(member: &RawValue) -> Self {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(member.get()).unwrap_or_default();
        let id = fields.get("id").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let fence = fields.get("fence").and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self { id: id.map(|id| super::object::truncate_name(&id)), fence }
    }

    /// Reads the claims of the members of a batch.
    pub(crate) fn of_batch(body: &[u8], list: &str) -> Vec<Self> {
        let batch: BTreeMap<String, Vec<&RawValue>> = serde_json::from_slice(body).unwrap_or_default();
        batch.get(list).into_iter().flatten().map(|member| Self::of_member(member)).collect()
    }
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

    pub(crate) fn refused(claim: NamedClaim, error: Error) -> Self {
        Self::Refused(RefusedOut { claim, error: Box::new(error.into()) })
    }

    pub(crate) fn settled(claim: ClaimId, receipt: WorkReceipt) -> Self {
        let WorkReceipt { applied, state } = receipt;
        Self::Settled { id: claim.id.to_string(), fence: claim.fence.0, applied, state: state.as_str() }
    }
}

#[cfg(test)]
mod tests;
