//! What the outcome of an attempt says about the health of its provider, and to which breakers it
//! is reported. Only the provider's own faults count: a call that its caller got wrong, a worker
//! that died, and a cancel say nothing.

use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::limit::Meter;
use crate::bounds;
use crate::breaker::BreakerReport;
use crate::fact::Fact;
use crate::fault::FaultClass;
use crate::id::{Fence, Seq};
use crate::time::Time;
use crate::verdict::{Blame, Verdict};

/// A shorter wait than this is not meant: the upstream gave no time.
const HINT_MIN: Duration = Duration::from_millis(100);

/// A report, and the only limit that it is about; `None` for every breaker of the operation.
pub(super) type ProviderHealth = (BreakerReport, Option<Arc<str>>);

/// Whether a failure of this class is the provider's own fault: time-outs, 5xx, 429, and
/// credentials that it does not accept.
pub(super) const fn is_providers_fault(class: FaultClass) -> bool {
    matches!(class, FaultClass::Transient | FaultClass::RateLimited | FaultClass::Forbidden)
}

/// What a verdict says about the health of the provider; `None` for nothing.
pub(super) fn health_of(verdict: &Verdict, blame: &Blame, now: Time) -> Option<ProviderHealth> {
    let health = health_by_class(verdict, now);
    let is_failure = matches!(
        verdict,
        Verdict::Throttled { .. }
            | Verdict::Retry { .. }
            | Verdict::Rejected(_)
            | Verdict::Unknown(_)
            | Verdict::PollFailed { .. }
    );
    match blame {
        Blame::NoOne if is_failure => None,
        Blame::Limit(limit) if is_failure => {
            let report = health.map_or(BreakerReport::Failed, |(report, _)| report);
            Some((report, Some(Arc::clone(limit))))
        }
        _ => health,
    }
}

fn health_by_class(verdict: &Verdict, now: Time) -> Option<ProviderHealth> {
    match verdict {
        Verdict::Done => Some((BreakerReport::Succeeded, None)),
        Verdict::Accepted { .. } => Some((BreakerReport::Accepted, None)),
        Verdict::Throttled { after, scope, .. } => {
            let report = match after.filter(|after| *after >= HINT_MIN) {
                Some(after) => BreakerReport::Throttled { until: now.after(after.min(bounds::HORIZON_MAX)) },
                None => BreakerReport::Failed,
            };
            Some((report, scope.clone()))
        }
        Verdict::Retry { fault, .. }
        | Verdict::Rejected(fault)
        | Verdict::Unknown(fault)
        | Verdict::PollFailed { fault, .. } => {
            is_providers_fault(fault.class).then_some((BreakerReport::Failed, None))
        }
        Verdict::Lost(_) | Verdict::Returned | Verdict::Unavailable(_) | Verdict::Canceled { .. } => None,
    }
}

impl Model {
    /// Reports the outcome of a claim to the breakers that it charges.
    pub(super) fn report_health(
        &mut self,
        (seq, fence): (Seq, Fence),
        now: Time,
        health: Option<ProviderHealth>,
        facts: &mut Vec<Fact>,
    ) {
        let Some((report, scope)) = health else { return };
        let Some((entry, _)) = self.claimed(seq, fence) else { return };
        let breaker = |ix: super::LimitIx| {
            let limit = &self.limits[ix.at()];
            let is_meant = scope.as_ref().is_none_or(|scope| *scope == limit.name);
            (is_meant && matches!(limit.meter, Meter::Breaker(_))).then(|| Arc::clone(&limit.name))
        };
        let breakers: Vec<Arc<str>> = entry.charges.iter().filter_map(|(ix, _)| breaker(*ix)).collect();
        for limit in breakers {
            self.decide(facts, Fact::Reported { seq, fence, at: now, limit, report });
        }
    }
}
