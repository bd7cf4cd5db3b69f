//! Applies the setting of a limit: a new limit, other figures, or another kind.

use std::sync::Arc;

use super::super::Model;
use super::super::limit::{Limit, LimitIx, Meter};
use crate::fact::{LimitShape, LimitSource};
use crate::time::Time;

impl Model {
    pub(super) fn absorb_limit(&mut self, name: &Arc<str>, shape: LimitShape, source: LimitSource, at: Time) {
        self.advance_clock(at);
        let configured = (source == LimitSource::Config).then_some(shape);
        let ix = match self.by_limit.get(name).copied() {
            Some(ix) => {
                self.reshape(ix, shape, at);
                ix
            }
            None => self.add_limit(Limit::new(Arc::clone(name), shape, source, at)),
        };
        let limit = &mut self.limits[ix.at()];
        limit.source = source;
        limit.configured = configured.or(limit.configured);
        self.stale.push(ix);
    }

    fn reshape(&mut self, ix: LimitIx, shape: LimitShape, at: Time) {
        let limit = &mut self.limits[ix.at()];
        match (&mut limit.meter, shape) {
            (Meter::Cap(cap), LimitShape::Cap { at_once }) => cap.at_once = at_once,
            (Meter::Breaker(breaker), LimitShape::Breaker { ladder }) => breaker.ladder = ladder,
            (Meter::Bucket(bucket), shape)
                if !matches!(shape, LimitShape::Cap { .. } | LimitShape::Breaker { .. }) =>
            {
                bucket.reshape(shape, at);
            }
            // Another kind, which only the configuration may set: the limit starts over, charged
            // with the calls in flight.
            (meter, shape) => {
                *meter = Limit::new(Arc::clone(&limit.name), shape, limit.source, at).meter;
                limit.closure = None;
                self.recharge_running(ix, at);
            }
        }
    }

    /// Charges a limit that has started over for every call in flight, and a cap also for every
    /// claim that awaits its completion.
    fn recharge_running(&mut self, ix: LimitIx, at: Time) {
        let is_cap = matches!(self.limits[ix.at()].meter, Meter::Cap(_));
        let awaiting = self.awaiting.values().filter(|_| is_cap);
        for group in self.running.values().chain(awaiting) {
            let group = &mut self.groups[group.at()];
            let (Some(run), Some(head)) = (group.run.as_mut(), group.head) else { continue };
            let charges = Arc::clone(&self.entries[head.at()].charges);
            let meter = &mut self.limits[ix.at()].meter;
            // A breaker counts a job only until it is accepted.
            if matches!(meter, Meter::Breaker(_)) && run.awaiting.is_some() {
                continue;
            }
            let taken = charges.iter().zip(&mut run.marks).find(|((limit, _), _)| *limit == ix);
            if let Some(((_, cost), mark)) = taken {
                *mark = meter.take(cost.micro, run.fence);
                if let Meter::Bucket(bucket) = meter {
                    bucket.mark_sent(*mark, at);
                }
            }
        }
    }

    pub(in crate::model) fn add_limit(&mut self, limit: Limit) -> LimitIx {
        let (name, is_opened) = (Arc::clone(&limit.name), limit.is_opened());
        let ix = LimitIx(u32::try_from(self.limits.insert(limit)).unwrap_or(u32::MAX));
        self.by_limit.insert(name, ix);
        if is_opened {
            self.opened.insert(ix);
        }
        ix
    }

    /// Removes a limit. One that is in use stays, whatever the log says: the operations that charge
    /// it would lose their reference.
    pub(super) fn absorb_limit_gone(&mut self, name: &Arc<str>, at: Time) {
        self.advance_clock(at);
        let Some(ix) = self.by_limit.get(name).copied() else { return };
        let limit = &self.limits[ix.at()];
        if limit.users > 0 || !limit.waiting.is_empty() {
            return;
        }
        self.by_limit.remove(name);
        self.limits.remove(ix.at());
        self.opened.remove(&ix);
    }
}
