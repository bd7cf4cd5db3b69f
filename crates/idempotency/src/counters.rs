//! Metrics. All names are in one place, because operators depend on them.

use metrics::counter;

use crate::key::IdempotencyKey;

/// An event of a request with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Hit,
    Miss,
    Conflict,
    Collision,
    TakenOver,
    LeaseLost,
    OutcomeUnknown,
    NotReplayable,
    Damaged,
    StoreFailed,
    Unprotected,
    BodyTooSlow,
    NoRoom,
}

impl Event {
    pub(crate) fn count(self) {
        let name = match self {
            Self::Hit => "idempotency.hit",
            Self::Miss => "idempotency.miss",
            Self::Conflict => "idempotency.conflict",
            Self::Collision => "idempotency.processing_collision",
            Self::TakenOver => "idempotency.takeover",
            Self::LeaseLost => "idempotency.lease_lost",
            Self::OutcomeUnknown => "idempotency.outcome_unknown",
            Self::NotReplayable => "idempotency.not_replayable",
            Self::Damaged => "idempotency.damaged",
            Self::StoreFailed => "idempotency.store_error",
            Self::Unprotected => "idempotency.unprotected",
            Self::BodyTooSlow => "idempotency.body_too_slow",
            Self::NoRoom => "idempotency.bodies_full",
        };
        counter!(name).increment(1);
    }
}

/// Counts and logs a store operation that failed. The store's message names the store, never a
/// request.
pub(crate) fn count_store_failure(doing: &str, key: &IdempotencyKey, cause: &dyn std::fmt::Display) {
    Event::StoreFailed.count();
    tracing::warn!(key = %key.redacted(), "could not {doing}: {cause}");
}

/// Counts the records that a sweep removed.
pub(crate) fn count_swept(count: u64) {
    counter!("idempotency.cleanup.count").increment(count);
}
