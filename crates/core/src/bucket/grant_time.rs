//! Computes when a budget will have granted a total to calls that start one after the other, each
//! as soon as it can. The calls are treated as a whole, so a million calls cost no more than one.

use super::drip::Drip;
use super::paced::PacedDrip;
use super::window::{RESET_MARGIN, Window};
use super::{Bucket, Budget};
use crate::time::Time;

impl Bucket {
    /// When calls that take `total` together can all have started, if no one else takes any; `None`
    /// when that depends on outstanding responses.
    #[must_use]
    pub fn all_granted_at(&self, total: u64, now: Time) -> Option<Time> {
        let total = total.saturating_add(self.held());
        let given = match &self.budget {
            Budget::Drip(paced) => paced.all_granted_at(total, now),
            Budget::Window(window) => window.all_granted_at(total, now)?,
            Budget::Gate(_) => now,
        };
        Some(given.max(self.frozen_until))
    }
}

impl PacedDrip {
    fn all_granted_at(&self, total: u64, now: Time) -> Time {
        let on_its_way: u64 = self.transit.iter().map(|transit| transit.cost).sum();
        let Drip { margin, capacity, .. } = self.drip;
        let margin = margin.min(capacity.saturating_sub(total.min(capacity)));
        self.drip.all_granted_at(total.saturating_add(on_its_way).saturating_add(margin), now)
    }
}

impl Window {
    fn all_granted_at(&self, total: u64, now: Time) -> Option<Time> {
        if !self.known {
            return None;
        }
        let fresh = self.refreshed(now);
        let missing = total.saturating_sub(fresh.remaining);
        if missing == 0 {
            return Some(now);
        }
        let further = u32::try_from(missing.div_ceil(self.limit) - 1).ok()?;
        let is_started = fresh.reset_at != Time::ZERO;
        let length = self.length();
        if length.is_zero() && (further > 0 || !is_started) {
            return None;
        }
        let next = if is_started { fresh.reset_at } else { now.after(length) };
        Some(next.after(RESET_MARGIN).after((length + RESET_MARGIN).checked_mul(further)?))
    }
}
