//! What happened in a partition in the last hour, minute by minute: sampled from the counters of
//! its engine, and kept in memory at this resolution. A partition that moves to another node starts
//! anew there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate::Activity;
use tidegate_core::Time;

use crate::state::PartitionState;
use crate::wire::time::Timestamp;

/// The minutes that are kept.
pub(crate) const MINUTES: usize = 60;
const MINUTE_MS: u64 = 60_000;

/// One minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MinuteSample {
    /// When it began.
    pub at: String,
    /// Operations that succeeded in it.
    pub succeeded: u64,
    /// Operations that failed in it.
    pub failed: u64,
    /// Attempts that an upstream throttled in it.
    pub throttled: u64,
    /// How long the oldest waiting operation had waited at its end, in seconds.
    pub oldest_s: u64,
}

impl MinuteSample {
    fn between(earlier: &Activity, later: &Activity, began: Time, now: Time) -> Self {
        let more = |of: fn(&Activity) -> u64| of(later).saturating_sub(of(earlier));
        Self {
            at: Timestamp(began).to_string(),
            succeeded: more(|activity| activity.counts.succeeded),
            failed: more(|activity| activity.counts.failed),
            throttled: more(|activity| activity.throttled),
            oldest_s: later.oldest_waiting.map_or(0, |oldest| now.since(oldest).as_secs()),
        }
    }

    /// Adds the same minute of another partition.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.throttled += other.throttled;
        self.oldest_s = self.oldest_s.max(other.oldest_s);
    }
}

/// The last hour of a partition.
#[derive(Debug, Default)]
pub(crate) struct ActivityHistory(Mutex<HistoryRing>);

#[derive(Debug, Default)]
struct HistoryRing {
    /// The counters at the beginning of the current minute.
    begin: Option<(Time, Activity)>,
    minutes: VecDeque<MinuteSample>,
}

impl ActivityHistory {
    /// Samples a partition at the end of every minute, for as long as it is served.
    pub(crate) fn sample(app: &Arc<PartitionState>) {
        let app = Arc::downgrade(app);
        tokio::spawn(async move {
            while let Some(rest) = take_sample(&app).await {
                tokio::time::sleep(rest).await;
            }
        });
    }

    /// Ends the current minute if its time is over.
    fn advance(&self, now: Time, activity: Activity) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = minute_of(now);
        let begin = ring.begin;
        match begin {
            Some((began, _)) if began >= minute => return,
            Some((began, earlier)) => {
                if ring.minutes.len() == MINUTES {
                    ring.minutes.pop_front();
                }
                let sample = MinuteSample::between(&earlier, &activity, began, now);
                ring.minutes.push_back(sample);
            }
            None => {}
        }
        ring.begin = Some((minute, activity));
    }

    /// The last minutes, oldest first. The one that is not over yet is the last.
    pub(crate) fn minutes(&self, now: Time, activity: &Activity) -> Vec<MinuteSample> {
        self.advance(now, *activity);
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current =
            ring.begin.map(|(began, earlier)| MinuteSample::between(&earlier, activity, began, now));
        let past = ring.minutes.len().saturating_sub(MINUTES - 1);
        ring.minutes.iter().skip(past).cloned().chain(current).collect()
    }
}

/// Samples once; returns the time until the next minute, or `None` if the partition is closed.
async fn take_sample(app: &Weak<PartitionState>) -> Option<Duration> {
    let app = app.upgrade()?;
    // While the engine cannot be asked, the minute continues.
    let load = app.engine.load().await;
    let now = app.server.clock.now();
    if let Ok(load) = load {
        app.history.advance(now, load.activity);
        app.limit_history.record(now, &load);
    }
    Some(Duration::from_millis(MINUTE_MS - now.as_millis() % MINUTE_MS))
}

/// When the minute of a time began.
pub(crate) const fn minute_of(now: Time) -> Time {
    Time::from_millis(now.as_millis() / MINUTE_MS * MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use tidegate_core::model::Counts;

    use super::*;

    fn activity(succeeded: u64, throttled: u64, oldest_ms: Option<u64>) -> Activity {
        let mut activity = Activity::default();
        let counts = Counts { succeeded, failed: succeeded / 2, ..Counts::default() };
        let oldest_waiting = oldest_ms.map(Time::from_millis);
        (activity.counts, activity.throttled, activity.oldest_waiting) = (counts, throttled, oldest_waiting);
        activity
    }

    #[test]
    fn minutes_hold_what_was_added_in_them() {
        let history = ActivityHistory::default();
        let at = |second: u64| Time::from_millis(second * 1_000);
        assert_eq!(history.minutes(at(30), &activity(100, 7, None)).len(), 1, "the first minute has begun");
        let seen = history.minutes(at(50), &activity(110, 9, Some(40_000)));
        assert_eq!((seen[0].succeeded, seen[0].failed, seen[0].throttled, seen[0].oldest_s), (10, 5, 2, 10));
        history.advance(at(61), activity(120, 9, None));
        let seen = history.minutes(at(62), &activity(121, 9, None));
        assert_eq!(seen.iter().map(|minute| minute.succeeded).collect::<Vec<_>>(), [20, 1]);
        assert_eq!([&*seen[0].at, &*seen[1].at], ["1970-01-01T00:00:00.000Z", "1970-01-01T00:01:00.000Z"]);
    }

    #[test]
    fn an_hour_is_kept() {
        let history = ActivityHistory::default();
        for minute in 0..200 {
            history.advance(Time::from_millis(minute * MINUTE_MS), activity(minute, 0, None));
        }
        let kept = history.minutes(Time::from_millis(199 * MINUTE_MS + 5), &activity(300, 0, None));
        assert_eq!((kept.len(), kept[0].succeeded, kept[MINUTES - 1].succeeded), (MINUTES, 1, 101));
    }

    #[test]
    fn partitions_add_up() {
        let mut one = MinuteSample { succeeded: 1, oldest_s: 9, ..MinuteSample::default() };
        one.merge(&MinuteSample {
            succeeded: 2,
            failed: 3,
            throttled: 4,
            oldest_s: 5,
            ..MinuteSample::default()
        });
        assert_eq!((one.succeeded, one.failed, one.throttled, one.oldest_s), (3, 3, 4, 9));
    }
}
