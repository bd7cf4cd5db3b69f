//! The attempts of an operation in JSON: those that the store remembers, and what the owner of the
//! partition has seen of them and of others, for as long as it remembers that.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate::{AttemptView, JourneyAttempt};
use tidegate_core::{FaultClass, Time};

use crate::wire::time::Timestamp;

/// How far apart two times of the same moment may be.
const SAME_TIME: Duration = Duration::from_secs(1);
const RETRIED: &str = "retried";
const THROTTLED: &str = "throttled";
const FAILED: &str = "failed";

/// One attempt of an operation.
#[derive(Default, Serialize)]
pub(super) struct AttemptOut<'a> {
    attempt: u16,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

impl<'a> AttemptOut<'a> {
    /// An attempt that the store remembers.
    fn stored(attempt: &'a AttemptView) -> Self {
        Self {
            attempt: attempt.number,
            state: attempt.state.as_str(),
            accepted_at: attempt.accepted_at().map(Timestamp),
            ended_at: attempt.ended_at.map(Timestamp),
            status: response_status(attempt),
            job_id: attempt.job_id.as_deref(),
            cost: attempt.cost,
            ..Self::default()
        }
    }

    /// One that only the owner has seen.
    fn seen(attempt: &'a JourneyAttempt) -> Self {
        let state = state_of(attempt);
        let accepted_at = attempt.accepted_at.map(Timestamp);
        let ended_at = attempt.ended_at.map(Timestamp);
        Self { attempt: attempt.number, state, accepted_at, ended_at, ..Self::default() }.with_way(attempt)
    }

    /// Adds what the owner has seen of it. The time that is stored may be that of its grant; the
    /// owner knows when its job was accepted.
    fn with_way(self, seen: &'a JourneyAttempt) -> Self {
        let stored_accepted_at = self.accepted_at.filter(|_| self.job_id.is_some());
        let is_throttled = self.state == RETRIED && seen.result == Some(THROTTLED);
        Self {
            state: if is_throttled { THROTTLED } else { self.state },
            granted_at: Some(Timestamp(seen.claimed_at)),
            sent_at: seen.sent_at.map(Timestamp),
            accepted_at: seen.accepted_at.map(Timestamp).or(stored_accepted_at),
            status: self.status.or(seen.status),
            fault_class: seen.fault.map(FaultClass::as_str),
            upstream: seen.upstream.as_deref(),
            ..self
        }
    }
}

/// All attempts that are known of an operation, in their order.
pub(super) fn all_attempts<'a>(
    stored: &'a [AttemptView],
    seen: &'a [JourneyAttempt],
    has_failed: bool,
) -> Vec<AttemptOut<'a>> {
    let mut others: Vec<&JourneyAttempt> = seen.iter().collect();
    let mut all: Vec<(Time, AttemptOut<'_>)> = Vec::with_capacity(stored.len() + seen.len());
    for attempt in stored {
        let out = AttemptOut::stored(attempt);
        all.push(match place_of(attempt, &others) {
            Some(place) => {
                let same = others.remove(place);
                (same.claimed_at, out.with_way(same))
            }
            None => (attempt.at, out),
        });
    }
    all.extend(others.into_iter().map(|one| (one.claimed_at, AttemptOut::seen(one))));
    all.sort_by_key(|(at, _)| *at);
    let mut all: Vec<AttemptOut<'_>> = all.into_iter().map(|(_, attempt)| attempt).collect();
    // No other attempt followed the last one.
    if let Some(last) = all.last_mut().filter(|last| has_failed && last.state == RETRIED) {
        last.state = FAILED;
    }
    all
}

/// Which of these a stored attempt is. Several may have its number: one that was throttled, or left
/// for another provider, passes it on. What is stored is the time of the grant, of the acceptance,
/// or of the end, taken a moment before or after the owner saw it.
fn place_of(attempt: &AttemptView, seen: &[&JourneyAttempt]) -> Option<usize> {
    let distance = |one: &JourneyAttempt| {
        let times = [Some(one.claimed_at), one.accepted_at, one.ended_at];
        times.into_iter().flatten().map(|at| at.since(attempt.at).max(attempt.at.since(at))).min()
    };
    let same = seen.iter().enumerate().filter(|(_, one)| one.number == attempt.number);
    let near = same.filter_map(|(place, one)| Some((distance(one)?, place)));
    near.filter(|(distance, _)| *distance < SAME_TIME).min().map(|(_, place)| place)
}

/// The state of an attempt that only the owner has seen. What was lost with its worker has no
/// result.
fn state_of(attempt: &JourneyAttempt) -> &'static str {
    if attempt.ended_at.is_none() {
        return if attempt.accepted_at.is_some() { "awaiting" } else { "running" };
    }
    match attempt.result {
        Some("done") => "succeeded",
        Some(THROTTLED) => THROTTLED,
        Some("retry") => RETRIED,
        Some("rejected") => FAILED,
        Some("given_back") => "returned",
        Some("canceled") => "canceled",
        _ => "unknown",
    }
}

/// The status of the response that accepted the job of an attempt, or that left its outcome
/// unknown.
fn response_status(attempt: &AttemptView) -> Option<u16> {
    #[derive(Deserialize)]
    struct ResponseStatus {
        status: u16,
    }
    let response = serde_json::from_slice::<ResponseStatus>(attempt.response.as_deref()?).ok()?;
    Some(response.status)
}
