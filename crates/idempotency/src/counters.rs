//! Metrics. All names are in one place, because operators depend on them.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// What requests with a key found since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// Repeats that got the saved response.
    pub hits: u64,
    /// Requests with a new key, which ran.
    pub misses: u64,
}

impl HitCounts {
    /// The hit rate in percent, rounded down; `None` before the first request.
    #[must_use]
    pub const fn percent(self) -> Option<u64> {
        self.hits.saturating_mul(100).checked_div(self.hits.saturating_add(self.misses))
    }
}

/// Counts hits and misses, for the metrics and for those who look at the keys.
#[derive(Debug, Default)]
pub(crate) struct HitCounter {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl HitCounter {
    pub(crate) fn count_hit(&self) {
        Event::Hit.count();
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_miss(&self) {
        Event::Miss.count();
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> HitCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        HitCounts { hits: count(&self.hits), misses: count(&self.misses) }
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
