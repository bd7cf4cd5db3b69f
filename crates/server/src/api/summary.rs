//! The state of a server in one response: operations by state, the last hour by minute, and the
//! groups in which most work waits longest.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate::{Engine, WaitingGroup};
use tidegate_core::Time;
use tidegate_core::model::Counts;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::HandlerResult;
use super::groups::read_outlines;
use crate::history::{MINUTES, MinuteSample};
use crate::state::SharedPartition;
use crate::wire::response::GroupOut;
use crate::wire::time;

/// The most groups of a response.
const GROUPS: usize = 25;
/// How long a ranking is used: all groups are compared for it.
const RANKING_VALID: Duration = Duration::from_millis(500);

/// The summary of a partition, or of all.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SummaryOut {
    pub counts: CountsOut,
    /// Oldest first.
    pub minutes: Vec<MinuteSample>,
    /// The most harm first: the number of operations, multiplied by the age of the first.
    pub groups: Vec<Value>,
}

/// Operations by state. Those that ended are counted since the store was first used.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct CountsOut {
    pub queued: u64,
    pub waiting: u64,
    /// In flight, or awaiting their completion.
    pub running: u64,
    /// Those of them that await their completion.
    pub awaiting: u64,
    pub unknown: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Groups with at least one operation.
    pub groups: u64,
    /// Groups that wait for an operator.
    pub stopped: u64,
}

impl CountsOut {
    const fn new(counts: &Counts) -> Self {
        let Counts {
            queued,
            waiting,
            running,
            awaiting,
            unknown,
            succeeded,
            failed,
            canceled,
            groups,
            stopped,
        } = *counts;
        Self { queued, waiting, running, awaiting, unknown, succeeded, failed, canceled, groups, stopped }
    }

    fn add(&mut self, other: &Self) {
        self.queued += other.queued;
        self.waiting += other.waiting;
        self.running += other.running;
        self.awaiting += other.awaiting;
        self.unknown += other.unknown;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.canceled += other.canceled;
        self.groups += other.groups;
        self.stopped += other.stopped;
    }
}

impl SummaryOut {
    /// Adds up what several partitions say.
    pub(crate) fn merge(parts: Vec<Self>, now: Time) -> Self {
        let (mut counts, mut groups) = (CountsOut::default(), Vec::new());
        let mut minutes: BTreeMap<String, MinuteSample> = BTreeMap::new();
        for part in parts {
            counts.add(&part.counts);
            groups.extend(part.groups);
            for minute in part.minutes {
                let sum = minutes
                    .entry(minute.at.clone())
                    .or_insert_with(|| MinuteSample { at: minute.at.clone(), ..MinuteSample::default() });
                sum.merge(&minute);
            }
        }
        let past = minutes.len().saturating_sub(MINUTES);
        groups.sort_by_cached_key(|group| std::cmp::Reverse(harm(group, now)));
        groups.truncate(GROUPS);
        Self { counts, minutes: minutes.into_values().skip(past).collect(), groups }
    }
}

/// How much harm the queue of a group does: operations times milliseconds.
fn harm(group: &Value, now: Time) -> u128 {
    let head_at = group["head"]["created_at"].as_str().and_then(time::parse);
    let depth = u128::from(group["depth"].as_u64().unwrap_or_default());
    depth * head_at.map_or(0, |at| now.since(at).as_millis())
}

/// The groups in which most work waits longest, as last read: many may look at once.
#[derive(Debug, Default)]
pub(crate) struct GroupRanking(Mutex<Option<(Instant, Vec<WaitingGroup>)>>);

impl GroupRanking {
    async fn read(&self, engine: &Engine) -> tidegate::Result<Vec<WaitingGroup>> {
        let mut last = self.0.lock().await;
        if let Some((at, groups)) = &*last
            && at.elapsed() < RANKING_VALID
        {
            return Ok(groups.clone());
        }
        let groups = engine.waiting_groups(GROUPS).await?;
        *last = Some((Instant::now(), groups.clone()));
        Ok(groups)
    }
}

pub(super) async fn show(State(app): State<SharedPartition>) -> HandlerResult {
    let (activity, groups) = tokio::try_join!(app.engine.activity(), app.ranking.read(&app.engine))?;
    let now = app.server.clock.now();
    let partition = app.engine.partition();
    let seqs = groups.iter().flat_map(|group| GroupOut::seqs_of(&group.view));
    let outlines = read_outlines(&app, seqs).await;
    let to_json = |group: &WaitingGroup| {
        let out = GroupOut::new(partition, &group.view, group.why.as_ref());
        let out = out.with_outlines(&group.view, &outlines).with_drains_at(group.drains_at);
        serde_json::to_value(out).unwrap_or_default()
    };
    let summary = SummaryOut {
        counts: CountsOut::new(&activity.counts),
        minutes: app.history.minutes(now, &activity),
        groups: groups.iter().map(to_json).collect(),
    };
    Ok(Json(summary).into_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn partitions_are_added_up_and_groups_ranked() {
        let part = |succeeded, at: &str, name: &str, depth: u64, since: &str| SummaryOut {
            counts: CountsOut { succeeded, ..CountsOut::default() },
            minutes: vec![MinuteSample { at: at.to_owned(), succeeded, ..MinuteSample::default() }],
            groups: vec![json!({ "group": name, "depth": depth, "head": { "created_at": since } })],
        };
        let parts = vec![
            part(1, "2030-01-01T00:01:00.000Z", "many", 100, "2030-01-01T00:01:50.000Z"),
            part(2, "2030-01-01T00:00:00.000Z", "old", 50, "2030-01-01T00:00:00.000Z"),
            part(4, "2030-01-01T00:01:00.000Z", "none", 0, "2030-01-01T00:00:00.000Z"),
        ];
        let all = SummaryOut::merge(parts, time::parse("2030-01-01T00:02:00Z").unwrap());
        assert_eq!(all.counts.succeeded, 7);
        assert_eq!(all.minutes.iter().map(|minute| minute.succeeded).collect::<Vec<_>>(), [2, 5]);
        let names: Vec<_> = all.groups.iter().map(|group| group["group"].as_str().unwrap()).collect();
        assert_eq!(names, ["old", "many", "none"]);
    }
}
