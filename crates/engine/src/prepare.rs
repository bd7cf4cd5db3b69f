//! Turns a submission into a draft: the executor determines its charges, bounds are checked, the
//! key is hashed. This runs in the caller's task, so that the owner only decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::operation::{DedupeEntry, on_failure};
use tidegate_core::{Draft, OnUnknown, Time, bounds};
use tidegate_store::outbox::OutboxId;
use tidegate_upstream::CallRequirements;

use crate::engine::Executors;
use crate::envelope::Envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::seal::{SealedContent, seal};
use crate::submission::{RequestKey, Submission};

/// A submission that is ready for the owner's decision.
#[derive(Debug)]
pub(crate) struct PreparedSubmission {
    pub draft: Draft,
    pub key: Option<Arc<str>>,
    pub envelope: Bytes,
    pub payload: Bytes,
    /// The field in which the deadline was given.
    pub deadline_field: &'static str,
    /// The outbox row that it came from.
    pub from: Option<OutboxId>,
}

pub(crate) fn prepare(
    submission: Submission,
    executors: &Executors,
    options: &Options,
    now: Time,
) -> Result<PreparedSubmission> {
    let Submission { kind, group, payload, .. } = &submission;
    check_sizes(&submission)?;
    let deadline = deadline(&submission, now)?;
    let required = requirements(executors, kind, payload, &submission.cost)?;
    let on_unknown = submission.on_unknown.unwrap_or(required.on_unknown);
    if on_unknown == OnUnknown::Reconcile && !required.can_reconcile {
        let message = format!("kind {kind:?} cannot check whether a call took effect; use repeat or ask");
        return Err(Error::new(ErrorKind::Invalid, message).field("on_unknown"));
    }
    let (dedupe, dedupe_from) = dedupe_entry(&submission, options, now);
    let envelope = Envelope {
        cost: submission.cost.clone(),
        max_attempts: submission.max_attempts,
        priority: submission.priority,
        on_unknown: submission.on_unknown.map(Into::into),
        on_failure: submission.on_failure.map(Into::into),
        request_id: submission.request_id.clone(),
        deployment_id: submission.deployment_id.clone(),
        upstream: submission.upstream.clone(),
        deadline_at: deadline.map(Time::as_micros),
        user: submission.user.clone(),
    };
    let draft = Draft {
        deadline,
        start_by: submission.start_within.map(|within| now.after(within)),
        not_before: submission.delay.filter(|delay| !delay.is_zero()).map(|delay| now.after(delay)),
        dedupe,
        dedupe_from,
        ..draft(group, kind, required, &envelope, options)
    };
    let deadline_field = if submission.deadline_at.is_some() { "deadline_at" } else { "deadline_ms" };
    let (key, payload) = (submission.dedupe_key, submission.payload);
    let content =
        SealedContent { group: &draft.group, kind: &draft.kind, key: key.as_deref(), payload: &payload };
    let envelope = seal(&envelope.encode(), content);
    Ok(PreparedSubmission { draft, key, envelope, payload, deadline_field, from: None })
}

/// Asks the executor of a kind what a call needs.
pub(crate) fn requirements(
    executors: &Executors,
    kind: &str,
    payload: &[u8],
    cost: &BTreeMap<String, u64>,
) -> Result<CallRequirements> {
    let executor = executors.get(kind).ok_or_else(|| {
        let known = executors.iter().filter(|(_, executor)| executor.is_submitted());
        let known = known.map(|(kind, _)| &**kind).collect::<Vec<_>>().join(", ");
        Error::new(ErrorKind::UnknownKind, format!("No kind is called {kind:?}; known kinds: {known}."))
            .field("kind")
    })?;
    executor.check(payload, cost).map_err(|refusal| {
        let code = match refusal.field.as_str() {
            "upstream" => ErrorKind::UnknownUpstream,
            field if field.starts_with("cost") => ErrorKind::UnknownLimit,
            _ => ErrorKind::Invalid,
        };
        Error::new(code, refusal.message).field(refusal.field)
    })
}

/// Builds the draft of an operation, for its first run and for a rerun. Its key, its delay and its
/// deadline belong to the first run alone.
pub(crate) fn draft(
    group: &Arc<str>,
    kind: &Arc<str>,
    required: CallRequirements,
    envelope: &Envelope,
    options: &Options,
) -> Draft {
    Draft {
        charges: required.charges,
        opens: required.opens,
        alternatives: required.alternatives,
        max_attempts: envelope.max_attempts.unwrap_or(bounds::ATTEMPTS_DEFAULT),
        priority: envelope.priority,
        on_unknown: envelope.on_unknown().unwrap_or(required.on_unknown),
        on_failure: envelope.on_failure().unwrap_or_else(|| on_failure(&options.on_failure, group, kind)),
        ..Draft::new(Arc::clone(group), Arc::clone(kind))
    }
}

/// The latest time it must start: a span from now, or an absolute time.
fn deadline(submission: &Submission, now: Time) -> Result<Option<Time>> {
    let wrong = |code, message: &str| Err(Error::new(code, message).field("deadline_at"));
    match (submission.deadline, submission.deadline_at) {
        (Some(_), Some(_)) => {
            wrong(ErrorKind::Invalid, "either deadline_at or deadline_ms can be given, not both")
        }
        (_, Some(at)) if at <= now => {
            wrong(ErrorKind::TooLate, "deadline_at has passed: it cannot start before that")
        }
        (_, Some(at)) if at > now.after(bounds::HORIZON_MAX) => {
            wrong(ErrorKind::Invalid, "deadline_at must not be more than a year away")
        }
        (within, at) => Ok(within.map(|within| now.after(within)).or(at)),
    }
}

/// What identifies a submission: its dedupe key, or else the key of its request; and the earliest
/// time until which that of an earlier one must be remembered for both to be the same.
fn dedupe_entry(submission: &Submission, options: &Options, now: Time) -> (Option<DedupeEntry>, Time) {
    let Submission { kind, group, payload, dedupe_key, request_key, .. } = submission;
    let entry = |key, window| DedupeEntry {
        key,
        fingerprint: fingerprint(group, kind, payload),
        expires: now.after(window),
    };
    match (dedupe_key, request_key) {
        (Some(key), _) => (Some(entry(key_hash(key), options.dedupe_window)), Time::ZERO),
        (None, Some(RequestKey { name, window, new_since })) => {
            let window = options.dedupe_window.min(*window);
            let key = Fingerprint::of("request key").part(name.as_bytes()).short();
            let from = new_since.map_or(Time::ZERO, |ago| now.before(ago).after(window));
            (Some(entry(key, window)), from)
        }
        (None, None) => (None, Time::ZERO),
    }
}

/// The hash under which a key is remembered.
pub(crate) fn key_hash(key: &str) -> u128 {
    Fingerprint::of("key").part(key.as_bytes()).short()
}

/// The hash of everything that makes two requests the same.
pub(crate) fn fingerprint(group: &str, kind: &str, payload: &[u8]) -> u128 {
    Fingerprint::of("operation").part(group.as_bytes()).part(kind.as_bytes()).part(payload).short()
}

fn check_sizes(submission: &Submission) -> Result<()> {
    let invalid = |field: &str, message: String| Err(Error::new(ErrorKind::Invalid, message).field(field));
    if submission.payload.len() > bounds::PAYLOAD_LEN_MAX {
        let (len, most) = (submission.payload.len(), bounds::PAYLOAD_LEN_MAX);
        let message = format!("the request is {len} bytes long; at most {most} are taken");
        return Err(Error::new(ErrorKind::TooLarge, message).field("request"));
    }
    if let Some(key) = &submission.dedupe_key
        && (key.is_empty() || key.len() > bounds::DEDUPE_KEY_LEN_MAX)
    {
        return invalid(
            "dedupe_key",
            format!("dedupe_key must be 1 to {} bytes long", bounds::DEDUPE_KEY_LEN_MAX),
        );
    }
    let traces = [
        ("request_id", &submission.request_id),
        ("deployment_id", &submission.deployment_id),
        ("user", &submission.user),
    ];
    for (field, trace) in traces {
        if trace.as_ref().is_some_and(|trace| trace.len() > bounds::TRACE_LEN_MAX) {
            return invalid(field, format!("{field} must be at most {} bytes long", bounds::TRACE_LEN_MAX));
        }
    }
    Ok(())
}
