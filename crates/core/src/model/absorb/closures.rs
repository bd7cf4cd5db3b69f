//! Remembers why a limit is closed: since when, and by which call last. The first call that
//! succeeds ends it. Nothing is decided by it: it is what an operator needs to know.

use std::sync::Arc;

use super::super::Model;
use super::super::limit::{Limit, Meter};
use crate::breaker::BreakerReport;
use crate::fact::{LimitClosure, SettledClaim};
use crate::id::{Fence, Seq};
use crate::time::Time;

impl Model {
    /// Lets a breaker learn from the outcome of a claim that charges it.
    pub(super) fn absorb_reported(
        &mut self,
        (seq, fence): (Seq, Fence),
        at: Time,
        limit: &Arc<str>,
        report: BreakerReport,
    ) {
        self.advance_clock(at);
        let Some(limit) = self.by_limit.get(limit).copied() else { return };
        let Some((entry, run)) = self.claimed(seq, fence) else { return };
        let accepted_at = entry.at;
        let mut charges = entry.charges.iter().zip(&run.marks);
        let Some(mark) = charges.find(|((of, _), _)| *of == limit).map(|(_, mark)| *mark) else { return };
        self.limits[limit.at()].report((mark, report), at, (seq, accepted_at));
        self.stale.push(limit);
    }

    pub(super) fn restore_closure(&mut self, limit: &Arc<str>, closure: &LimitClosure) {
        if let Some(ix) = self.by_limit.get(limit) {
            self.limits[ix.at()].closure = Some(Box::new(closure.clone()));
        }
    }
}

impl Limit {
    fn report(&mut self, (mark, report): (u64, BreakerReport), at: Time, operation: (Seq, Time)) {
        let Meter::Breaker(breaker) = &mut self.meter else { return };
        let (openings, was_over) = (breaker.openings, breaker.is_outage_over(at));
        let is_current = breaker.is_current(mark);
        breaker.report(mark, report, at);
        if breaker.openings != openings {
            self.note_closed(at, operation, was_over);
        } else if report == BreakerReport::Succeeded && is_current {
            self.closure = None;
        }
    }

    /// Closes a bucket as the response to a call asked: until when, and the cost of that call.
    pub(super) fn throttle(&mut self, (until, cost): (Time, u64), settled: &SettledClaim, accepted_at: Time) {
        let Meter::Bucket(bucket) = &mut self.meter else { return };
        let was_over = bucket.throttles == 0 && bucket.frozen_until <= settled.at;
        bucket.freeze(until, cost, settled.at);
        self.note_closed(settled.at, (settled.seq, accepted_at), was_over);
        self.name_cause(settled);
    }

    fn note_closed(&mut self, at: Time, (seq, accepted_at): (Seq, Time), is_new: bool) {
        let since = self.closure.as_ref().filter(|_| !is_new).map_or(at, |closure| closure.since);
        self.closure = Some(Box::new(LimitClosure { since, at, seq, accepted_at, fault: None }));
    }

    /// Adds the fault of the call that has just closed it, known when its claim is settled.
    pub(super) fn name_cause(&mut self, settled: &SettledClaim) {
        let is_cause = |closure: &&mut Box<LimitClosure>| {
            closure.fault.is_none() && (closure.seq, closure.at) == (settled.seq, settled.at)
        };
        if let Some(closure) = self.closure.as_mut().filter(is_cause) {
            closure.fault.clone_from(&settled.fault);
        }
    }

    /// Why it is closed; `None` when it is open, and no call has to show that first.
    pub(in crate::model) fn current_closure(&self, now: Time) -> Option<&LimitClosure> {
        let is_over = match &self.meter {
            Meter::Breaker(breaker) => breaker.is_outage_over(now),
            Meter::Bucket(bucket) => bucket.frozen_until <= now,
            Meter::Cap(_) => true,
        };
        self.closure.as_deref().filter(|_| !is_over)
    }
}
