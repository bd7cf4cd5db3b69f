//! The JSON of remote workers: what they ask for, the claims they get, and their reports.

mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tidegate::{ClaimId, Fence, LeaseExtension, RemoteClaim, WorkReceipt, WorkRequest};
use tidegate_core::bounds::WORK_BATCH_MAX;

pub(crate) use report::{encode_result, parse_fault, parse_settle, stored_result};

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

/// The leases that workers may ask for, in milliseconds, and the one they get by default.
const LEASE_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;
const LEASE_MS_DEFAULT: u64 = 30_000;
/// How long a take may wait, in milliseconds, and how long it does by default.
const WAIT_MS: std::ops::RangeInclusive<u64> = 0..=60_000;
const WAIT_MS_DEFAULT: u64 = 20_000;
/// The largest fence: what every JSON parser reads exactly.
const FENCE_MAX: u64 = (1 << 53) - 1;
/// The most kinds in one take.
const KINDS_MAX: usize = 64;

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

fn parse_claim(id: Field<'_>, fence: Field<'_>, problems: &mut RequestProblems) -> Option<ClaimId> {
    let id = problems.check(id.required_text().and_then(|text| parse_id(&text).map(Some)));
    let fence =
        fence.integer(0..=FENCE_MAX).and_then(|number| number.map(Some).ok_or_else(|| missing("fence")));
    Some(ClaimId { fence: Fence(problems.check(fence)?), id: id? })
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
    alternative: Option<AlternativeOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_token: Option<&'a str>,
}

/// The alternative that was granted: which one to use, and what it charges.
#[derive(Serialize)]
struct AlternativeOut<'a> {
    name: &'a str,
    limits: Vec<&'a str>,
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
    let alternative = claim
        .alternative
        .as_deref()
        .map(|name| AlternativeOut { name, limits: claim.limits.iter().map(AsRef::as_ref).collect() });
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
        alternative,
        job,
        completion_token: claim.completion_token.as_deref(),
    };
    Some(HandedClaim { claim: claim.claim, json: serde_json::value::to_raw_value(&out).ok()? })
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
