//! One shop: its limits, and its state. It is created with its first call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::Time;

use super::bulk::BulkRuns;
use super::keys::IdempotencyKeys;
use super::leaky_bucket::LeakyBucket;
use super::plan::ShopLimits;
use super::points::PointBucket;

/// Most inventory levels remembered per shop.
const LEVELS_MAX: usize = 100_000;

/// The state of a shop.
#[derive(Debug)]
pub struct Shop {
    /// Its limits.
    pub limits: ShopLimits,
    /// Its GraphQL points.
    pub points: PointBucket,
    /// Its REST bucket.
    pub rest: LeakyBucket,
    /// Its bulk operations.
    pub bulks: BulkRuns,
    /// Its idempotency keys.
    pub keys: IdempotencyKeys,
    /// Its counts.
    pub counts: ShopCounts,
    levels: BTreeMap<(String, String), i64>,
}

/// The plain counts of a shop.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShopCounts {
    /// Every call.
    pub calls: u64,
    /// REST calls.
    pub rest_calls: u64,
    /// Calls that were throttled.
    pub throttled: u64,
    /// Calls beyond a limit.
    pub overstepped: u64,
}

/// The statistics of a shop at `/_sim/stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopStats {
    /// Every call, including refused ones.
    pub calls: u64,
    /// Calls that were throttled: `THROTTLED`, or a 429.
    pub throttled: u64,
    /// Calls beyond a limit: those, documents above the highest cost, and bulk operations beyond
    /// the slots.
    pub overstepped: u64,
    /// Points that calls used, without those returned.
    pub points_granted: u64,
    /// Points restored since the first call until now, or that would have been with room for them.
    /// Without the initial balance.
    pub points_restorable_since_first: u64,
    /// Milliseconds since the first GraphQL call.
    pub since_first_ms: u64,
    /// Points available now.
    pub available: u64,
    /// The capacity in points now.
    pub maximum: u64,
    /// Points restored per second now.
    pub restore_per_s: u64,
    /// REST calls.
    pub rest_calls: u64,
    /// Bulk operations that have not ended.
    pub bulk_running: u64,
    /// Bulk operations that were started.
    pub bulk_started: u64,
}

impl Shop {
    /// Creates a shop with full buckets.
    #[must_use]
    pub fn new(figures: ShopLimits, now: Time) -> Self {
        Self {
            limits: figures,
            points: PointBucket::new(figures.maximum, figures.restore_per_s, now),
            rest: LeakyBucket::new(figures.rest_bucket, figures.rest_per_s, now),
            bulks: BulkRuns::default(),
            keys: IdempotencyKeys::default(),
            counts: ShopCounts::default(),
            levels: BTreeMap::new(),
        }
    }

    /// Changes the limits from now on.
    pub fn reshape(&mut self, figures: ShopLimits, now: Time) {
        self.limits = figures;
        self.points.reshape(figures.maximum, figures.restore_per_s, now);
        self.rest.reshape(figures.rest_bucket, figures.rest_per_s, now);
    }

    /// Counts a throttled call.
    pub const fn count_throttled(&mut self) {
        self.counts.throttled += 1;
        self.counts.overstepped += 1;
    }

    /// Changes an inventory level, and returns the new level.
    pub fn adjust(&mut self, item: &str, location: &str, delta: i64) -> i64 {
        let place = (item.to_owned(), location.to_owned());
        if self.levels.len() >= LEVELS_MAX && !self.levels.contains_key(&place) {
            self.levels.pop_first();
        }
        let level = self.levels.entry(place).or_default();
        *level = level.saturating_add(delta);
        *level
    }

    /// Returns its statistics.
    pub fn stats(&mut self, now: Time) -> ShopStats {
        let status = self.points.status(now);
        ShopStats {
            calls: self.counts.calls,
            throttled: self.counts.throttled,
            overstepped: self.counts.overstepped,
            points_granted: self.points.granted(),
            points_restorable_since_first: self.points.restorable(now),
            since_first_ms: self.points.first().map_or(0, |first| now.since(first).as_millis() as u64),
            available: status.available,
            maximum: status.maximum,
            restore_per_s: status.restore_per_s,
            rest_calls: self.counts.rest_calls,
            bulk_running: self.bulks.running(now),
            bulk_started: self.bulks.started(),
        }
    }
}
