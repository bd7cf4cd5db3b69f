//! The reports of remote workers, read or refused field by field.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate::upstream::http::{response::Content, result};
use tidegate::upstream::{JobNote, Outcome};
use tidegate::{Fault, FaultClass, Hint, Time, Verdict, WorkReport};
use tidegate_core::Blame;
use tidegate_core::bounds::{
    AWAIT_MAX, CHARGES_MAX, HORIZON_MAX, RESULT_LEN_MAX, TOKENS_MAX, WORK_BATCH_MAX,
};
use tidegate_core::masking::mask_text;
use tidegate_core::operation::MICRO;

use super::super::field::Field;
use super::super::object::{Fields, ParsedObject, missing, read, read_list};
use super::parse_claim;
use crate::error::{Error, ErrorCode, Result};

const SETTLE: [&str; 15] = [
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
    "blame",
    "cost",
];
const FAULT: [&str; 3] = ["class", "message", "may_have_happened"];
const HINT: [&str; 6] = ["limit", "remaining", "capacity", "refill_per_s", "reset_ms", "spent"];

/// The times that workers may name, in milliseconds: a year.
const HORIZON_MS: std::ops::RangeInclusive<u64> = 0..=HORIZON_MAX.as_secs() * 1_000;
/// How long a job may be awaited, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=AWAIT_MAX.as_secs() * 1_000;
/// The highest cost of a job, in millionths of a unit: what every JSON parser reads exactly.
const JOB_COST_MAX: u64 = (1 << 53) - 1;

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

/// Parses reports. Each is valid or not by itself.
pub(crate) fn parse_settle(body: &[u8], now: Time) -> Result<Vec<Result<WorkReport>>> {
    let items = read_list(body, "settlements", WORK_BATCH_MAX, &SETTLE)?;
    Ok(items.into_iter().map(|item| parse_settlement(item, now)).collect())
}

fn parse_settlement(object: ParsedObject<'_, 15>, now: Time) -> Result<WorkReport> {
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
    let blame = problems.check(parse_blame(field(13)));
    let cost = problems.check(field(14).integer(0..=JOB_COST_MAX));
    problems.finish()?;
    let (claim, outcome) = (claim.ok_or_else(|| missing("id"))?, outcome.ok_or_else(|| missing("outcome"))?);
    let cannot = fault.clone().filter(|_| outcome == WorkOutcome::Returned);
    let fault = || fault.unwrap_or_else(|| Fault::new(class, "an unexplained failure at the worker"));
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
        WorkOutcome::Returned => cannot.map_or(Verdict::Returned, Verdict::Unavailable),
        WorkOutcome::Canceled => Verdict::Canceled { may_have_happened },
    };
    // What is known of a job stays when a later report leaves it out.
    let has_note = external_id.is_some() || !memo.is_empty() || cost.is_some();
    let job = has_note.then(|| JobNote { external_id, memo, cost });
    let outcome = Outcome::unanswered(verdict).with_hints(hints).with_body(body).with_job(job);
    Ok(WorkReport { claim, outcome: outcome.with_blame(blame) })
}

/// Whom a failure counts against: a list of one limit, or an empty one for no one.
fn parse_blame(field: Field<'_>) -> Result<Blame> {
    let Some(raw) = field.raw.filter(|raw| raw.get() != "null") else { return Ok(Blame::ByClass) };
    let names: Vec<String> = serde_json::from_str(raw.get()).map_err(|_| {
        Error::new(ErrorCode::Malformed, "The field \"blame\" must be a list of strings.").field(field.name)
    })?;
    match <[String; 1]>::try_from(names) {
        Ok([limit]) => Ok(Blame::Limit(limit.into())),
        Err(names) if names.is_empty() => Ok(Blame::NoOne),
        Err(_) => {
            let message = "The field \"blame\" names at most one limit.";
            Err(Error::new(ErrorCode::Invalid, message).field(field.name))
        }
    }
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
    // It is shown, logged and kept as long as the operation.
    let fault = Fault::new(class, mask_text(&message));
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

/// A memo as it is stored: a string that is no JSON itself is stored as what it says, as executors
/// of this server store theirs; see [`super::memo_json`].
pub(super) fn stored_memo(memo: &RawValue) -> Bytes {
    let text = serde_json::from_str::<String>(memo.get()).unwrap_or_default();
    let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
    match text.is_empty() || is_json {
        true => Bytes::copy_from_slice(memo.get().as_bytes()),
        false => text.into(),
    }
}
