//! Parses `extensions.cost` of a GraphQL response, in micro-points. Each number may be whole,
//! decimal, null or missing; a budget that could never be used (nothing is restored, nothing fits)
//! is ignored.

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::operation::MICRO;

use crate::delay::ThrottleStatus;

/// More points than any budget holds. In micro-points it is still exact as a float.
const POINTS_MAX: f64 = 1e9;

/// The cost of a query and what is left, as far as the response reports it. All in micro-points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryCost {
    /// What had to be available before it ran.
    pub requested: Option<u64>,
    /// What it took in the end; absent when it did not run.
    pub actual: Option<u64>,
    /// The capacity of the budget.
    pub maximum: Option<u64>,
    /// What is available now, never more than the maximum.
    pub available: Option<u64>,
    /// What is restored per second.
    pub restore_per_s: Option<u64>,
}

impl QueryCost {
    /// Returns the budget, when all of it was reported.
    #[must_use]
    pub fn throttle_status(&self) -> Option<ThrottleStatus> {
        Some(ThrottleStatus {
            maximum: self.maximum?,
            available: self.available?,
            restore_per_s: self.restore_per_s?,
        })
    }

    /// Returns the milliseconds until the requested cost is available: how long a throttled
    /// response asks to wait.
    #[must_use]
    pub fn delay_ms(&self) -> Option<u64> {
        self.throttle_status()?.delay_ms(self.requested?)
    }
}

#[derive(Default, Deserialize)]
struct Extensions<'a> {
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CostBody<'a> {
    #[serde(borrow, default)]
    requested_query_cost: Option<&'a RawValue>,
    #[serde(borrow, default)]
    actual_query_cost: Option<&'a RawValue>,
    #[serde(borrow, default)]
    throttle_status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThrottleStatusBody<'a> {
    #[serde(borrow, default)]
    maximum_available: Option<&'a RawValue>,
    #[serde(borrow, default)]
    currently_available: Option<&'a RawValue>,
    #[serde(borrow, default)]
    restore_rate: Option<&'a RawValue>,
}

/// Parses the JSON of `extensions`. A part that is not an object counts as absent, and the rest is
/// still parsed.
pub(super) fn parse_cost(extensions: &str) -> QueryCost {
    let cost = part::<Extensions<'_>>(Some(extensions)).cost.map(RawValue::get);
    let written: CostBody<'_> = part(cost);
    let status: ThrottleStatusBody<'_> = part(written.throttle_status.map(RawValue::get));
    let useful = |number: &u64| *number > 0;
    let maximum = parse_micro_points(status.maximum_available).filter(useful);
    QueryCost {
        requested: parse_micro_points(written.requested_query_cost),
        actual: parse_micro_points(written.actual_query_cost),
        maximum,
        available: parse_micro_points(status.currently_available)
            .map(|left| left.min(maximum.unwrap_or(u64::MAX))),
        restore_per_s: parse_micro_points(status.restore_rate).filter(useful),
    }
}

fn part<'a, T: Default + Deserialize<'a>>(json: Option<&'a str>) -> T {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Parses a number of points into micro-points. A negative number is zero; anything that is not a
/// number, or larger than any budget, counts as absent.
pub(super) fn parse_micro_points(json: Option<&RawValue>) -> Option<u64> {
    let points = serde_json::from_str::<f64>(json?.get()).ok()?;
    (points <= POINTS_MAX).then(|| (points.max(0.0) * MICRO as f64).round() as u64)
}
