//! One shop: its limits, and what it remembers. It is made when it is first called.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::Time;

use super::bulk::BulkRuns;
use super::keys::IdempotencyKeys;
use super::leaky_bucket::LeakyBucket;
use super::plan::ShopLimits;
use super::points::PointBucket;

/// Most inventory levels that a shop remembers.
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
    /// What it counted.
    pub counts: ShopCounts,
    levels: BTreeMap<(String, String), i64>,
}

/// Plain counts of a shop.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShopCounts {
    /// Every call.
    pub calls: u64,
    /// Calls to REST.
    pub rest_calls: u64,
    /// Calls that were told to wait.
    pub throttled: u64,
    /// Calls beyond what a limit allowed.
    pub overstepped: u64,
}

/// What is told of a shop at `/_sim/stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopStats {
    /// Every call, refused ones included.
    pub calls: u64,
    /// Calls that were told to wait: `THROTTLED`, or a 429.
    pub throttled: u64,
    /// Calls beyond a limit: those, documents above the highest cost, and bulk operations beyond the places.
    pub overstepped: u64,
    /// Points that calls used; what was given back is not in it.
    pub points_granted: u64,
    /// Points that came back since the first call until now, or would have with room for them. What was there at
    /// first is not in it.
    pub points_restorable_since_first: u64,
    /// How long ago the first GraphQL call came.
    pub since_first_ms: u64,
    /// Points that are there now.
    pub available: u64,
    /// The most points it holds now.
    pub maximum: u64,
    /// Points that come back each second now.
    pub restore_per_s: u64,
    /// Calls to REST.
    pub rest_calls: u64,
    /// Bulk operations that are not over.
    pub bulk_running: u64,
    /// Bulk operations that were started.
    pub bulk_started: u64,
}

impl Shop {
    /// A fresh one with full buckets.
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

    /// Other limits from now on.
    pub fn reshape(&mut self, figures: ShopLimits, now: Time) {
        self.limits = figures;
        self.points.reshape(figures.maximum, figures.restore_per_s, now);
        self.rest.reshape(figures.rest_bucket, figures.rest_per_s, now);
    }

    /// Counts a call that was told to wait.
    pub const fn count_throttled(&mut self) {
        self.counts.throttled += 1;
        self.counts.overstepped += 1;
    }

    /// Changes an inventory level, and says what it is then.
    pub fn adjust(&mut self, item: &str, location: &str, delta: i64) -> i64 {
        let place = (item.to_owned(), location.to_owned());
        if self.levels.len() >= LEVELS_MAX && !self.levels.contains_key(&place) {
            self.levels.pop_first();
        }
        let level = self.levels.entry(place).or_default();
        *level = level.saturating_add(delta);
        *level
    }

    /// What is told of it.
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
