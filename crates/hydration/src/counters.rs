//! Metrics. All names are in one place, because operators depend on them.

use metrics::{counter, gauge};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HydrationCount {
    LocalHit,
    NegativeHit,
    FailureHit,
    Joined,
    Published,
    AskedElsewhere,
    AbsentElsewhere,
    Upgraded,
    Updated,
    NotFound,
    TimedOut,
    SourceAbsent,
    BusFailed,
    Refused,
    Deferred,
    Degraded,
    LateAnswer,
    OutdatedAnswer,
    MalformedEvent,
    CopyFailed,
    Gap,
    SourceLoaded,
    SourceCollapsed,
    SourceFailed,
    SourceDropped,
}

impl HydrationCount {
    pub(crate) fn count(self) {
        let name = match self {
            Self::LocalHit => "hydration.local_hit",
            Self::NegativeHit => "hydration.negative_hit",
            Self::FailureHit => "hydration.failure_hit",
            Self::Joined => "hydration.joined",
            Self::Published => "hydration.published",
            Self::AskedElsewhere => "hydration.asked_elsewhere",
            Self::AbsentElsewhere => "hydration.absent_elsewhere",
            Self::Upgraded => "hydration.upgraded",
            Self::Updated => "hydration.updated",
            Self::NotFound => "hydration.not_found",
            Self::TimedOut => "hydration.timeout",
            Self::SourceAbsent => "hydration.source_absent",
            Self::BusFailed => "hydration.bus_failed",
            Self::Refused => "hydration.refused",
            Self::Deferred => "hydration.deferred",
            Self::Degraded => "hydration.degraded",
            Self::LateAnswer => "hydration.late_answer",
            Self::OutdatedAnswer => "hydration.outdated_answer",
            Self::MalformedEvent => "hydration.malformed_event",
            Self::CopyFailed => "hydration.copy_failed",
            Self::Gap => "hydration.gap",
            Self::SourceLoaded => "hydration.source.loaded",
            Self::SourceCollapsed => "hydration.source.collapsed",
            Self::SourceFailed => "hydration.source.failed",
            Self::SourceDropped => "hydration.source.dropped",
        };
        counter!(name).increment(1);
    }
}

/// Reports how much is in flight.
pub(crate) fn report_levels(flights: usize, waiters: usize, deferred: usize, negatives: usize) {
    gauge!("hydration.flights").set(flights as f64);
    gauge!("hydration.waiters").set(waiters as f64);
    gauge!("hydration.deferred.waiting").set(deferred as f64);
    gauge!("hydration.negatives").set(negatives as f64);
}
