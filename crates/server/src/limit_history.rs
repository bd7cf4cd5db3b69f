//! The last hour of each limit of a partition, minute by minute: the least that was left of it when
//! it was looked at, and how often a throttled call closed it. Kept in memory, for the limits that
//! no call opened. A partition that moves to another node starts anew there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tidegate::PartitionLoad;
use tidegate_core::Time;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;

use crate::history::{MINUTES, minute_of};
use crate::wire::time::Timestamp;

/// The most limits that are remembered.
const LIMITS_MAX: usize = 1_000;
const MINUTE: Duration = Duration::from_secs(60);

/// The last hour of a limit, oldest minute first.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LimitHour {
    /// When the first of the minutes began.
    from: Timestamp,
    /// The least that was left in each minute; `None` if it is not known.
    left_percent: Vec<Option<u64>>,
    /// How often a throttled call closed it in each minute.
    closed: Vec<u64>,
}

/// The last hour of the limits of a partition.
#[derive(Debug, Default)]
pub(crate) struct LimitHistory(Mutex<BTreeMap<Arc<str>, LimitRing>>);

#[derive(Debug)]
struct LimitRing {
    /// The beginning of the last minute.
    last: Time,
    /// What was left in each minute, and how often it was closed. There is at least one.
    minutes: VecDeque<(Option<u64>, u64)>,
    /// How often it had been closed when it was looked at last.
    closings: u64,
}

impl LimitHistory {
    /// Looks at the limits.
    pub(crate) fn record(&self, now: Time, load: &PartitionLoad) {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<&str> = load.limits.iter().map(|limit| &*limit.name).collect();
        rings.retain(|name, _| known.contains(&**name));
        for limit in &load.limits {
            let closings = load.closings.of(&limit.name);
            if let Some(ring) = rings.get_mut(&limit.name) {
                ring.record(minute_of(now), left_percent(limit), closings);
            } else if rings.len() < LIMITS_MAX {
                let ring = LimitRing::new(minute_of(now), left_percent(limit), closings);
                rings.insert(Arc::clone(&limit.name), ring);
            }
        }
    }

    /// The last hour of a limit. The last minute is not over yet.
    pub(crate) fn hour(&self, limit: &str) -> Option<LimitHour> {
        let rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rings.get(limit).map(LimitRing::hour)
    }
}

impl LimitRing {
    fn new(minute: Time, left: Option<u64>, closings: u64) -> Self {
        Self { last: minute, minutes: VecDeque::from([(left, 0)]), closings }
    }

    fn record(&mut self, minute: Time, left: Option<u64>, closings: u64) {
        let closed = closings.saturating_sub(self.closings);
        self.closings = closings;
        // Of the minutes in between nothing is known.
        let passed = minute.since(self.last).as_secs() / MINUTE.as_secs();
        for _ in 0..passed.min(MINUTES as u64) {
            if self.minutes.len() == MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back((None, 0));
        }
        self.last = self.last.max(minute);
        if let Some((least, times)) = self.minutes.back_mut() {
            *least = [*least, left].into_iter().flatten().min();
            *times += closed;
        }
    }

    fn hour(&self) -> LimitHour {
        let before = u32::try_from(self.minutes.len() - 1).unwrap_or_default();
        let (left_percent, closed) = self.minutes.iter().copied().unzip();
        LimitHour { from: Timestamp(self.last.before(MINUTE * before)), left_percent, closed }
    }
}

/// What is left of a limit, in percent of what it can hold; `None` if it is only open or closed, or
/// if that is not known yet.
fn left_percent(limit: &LimitView) -> Option<u64> {
    let most = match limit.shape {
        LimitShape::Drip { capacity, .. } => capacity,
        LimitShape::Window { limit, .. } => limit,
        LimitShape::Cap { at_once } => u64::from(at_once),
        LimitShape::Gate | LimitShape::Breaker { .. } => 0,
    };
    let percent = (u128::from(limit.level) * 100).checked_div(u128::from(most))?;
    u64::try_from(percent.min(100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_the_least_and_every_closing() {
        let minute = |number: u64| Time::from_millis(number * 60_000);
        let mut ring = LimitRing::new(minute(1), Some(80), 5);
        for (at, left, closings) in [(1, 20, 6), (1, 90, 6), (2, 100, 8), (4, 70, 8)] {
            ring.record(minute(at), Some(left), closings);
        }
        let hour = ring.hour();
        assert_eq!(hour.from.0, minute(1));
        assert_eq!(
            (hour.left_percent, hour.closed),
            (vec![Some(20), Some(100), None, Some(70)], vec![1, 2, 0, 0])
        );
        // An engine that was opened anew counts from nothing, and a clock may go back.
        ring.record(minute(3), Some(75), 1);
        assert_eq!(ring.hour().left_percent.last(), Some(&Some(70)));
        ring.record(minute(1_000), None, 1);
        let hour = ring.hour();
        assert_eq!((hour.from.0, hour.closed), (minute(941), vec![0; MINUTES]));
    }
}
