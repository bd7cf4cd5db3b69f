//! Watches the deadlines of waiting groups: when a limit worsens so far that a head can no longer
//! start in time, its group becomes ready, and its turn ends the operation. A model that replays
//! the log examines every group anew, and comes to the same end.

use std::sync::Arc;

use super::Model;
use super::entry::{Charges, Cost};
use super::group::GroupIx;
use super::limit::{LimitIx, Meter};
use crate::bucket::Readiness;
use crate::time::Time;

/// Groups whose deadlines are compared with a changed limit without being past it. Only costs that
/// differ widely make more than one necessary.
const SPARED_MAX: usize = 64;

impl Model {
    /// Watches the deadline of a group that begins to wait, in every limit that its head charges.
    pub(super) fn watch_deadline(&mut self, ix: GroupIx) {
        let Some((deadline, charges)) = self.deadline_of(ix) else { return };
        for (limit, cost) in charges.iter() {
            let limit = &mut self.limits[limit.at()];
            limit.watched.insert((deadline, ix));
            limit.watched_cost_max = limit.watched_cost_max.max(cost.micro);
        }
    }

    /// Stops watching a group that no longer waits.
    pub(super) fn unwatch_deadline(&mut self, ix: GroupIx) {
        let Some((deadline, charges)) = self.deadline_of(ix) else { return };
        for (limit, _) in charges.iter() {
            let limit = &mut self.limits[limit.at()];
            limit.watched.remove(&(deadline, ix));
            if limit.watched.is_empty() {
                limit.watched_cost_max = 0;
            }
        }
    }

    /// The deadline of a head that has not started, and what it charges.
    fn deadline_of(&self, ix: GroupIx) -> Option<(Time, Charges)> {
        let group = &self.groups[ix.at()];
        let head = self.head_of(group).filter(|head| head.deadline != Time::MAX && group.run.is_none())?;
        Some((head.deadline, Arc::clone(&head.charges)))
    }

    /// Makes those groups ready whose heads a changed limit cannot serve before their deadlines.
    pub(super) fn wake_too_late(&mut self, limit: LimitIx, now: Time) {
        for ix in self.too_late(limit, now) {
            self.dequeue_group(ix);
            self.enqueue_group(ix, now);
        }
    }

    fn too_late(&self, ix: LimitIx, now: Time) -> Vec<GroupIx> {
        let limit = &self.limits[ix.at()];
        if limit.watched.is_empty() || matches!(limit.meter, Meter::Cap(_)) {
            return Vec::new();
        }
        // The higher the cost, the later: no deadline beyond this is missed.
        let dearest = Cost { micro: limit.watched_cost_max, estimated: false };
        let last = match limit.ready(dearest, now) {
            Readiness::Now => return Vec::new(),
            Readiness::At(at) => at,
            Readiness::AfterAnswer | Readiness::Never => Time::MAX,
        };
        let (mut found, mut spared) = (Vec::new(), 0);
        for (deadline, group) in limit.watched.iter().take_while(|(deadline, _)| *deadline <= last) {
            let cost = self.cost_of(*group, ix).unwrap_or_default();
            if limit.ready(cost, now).is_past(*deadline) {
                found.push(*group);
            } else {
                spared += 1;
                if spared == SPARED_MAX {
                    break;
                }
            }
        }
        found
    }
}
