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
use tidegate_core::model::{Counts, KindLoad};
use tidegate_dispatch::KIND as GENERATION;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::HandlerResult;
use super::groups::read_outlines;
use crate::history::{MINUTES, MinuteSample};
use crate::state::SharedPartition;
use crate::wire::response::GroupOut;
use crate::wire::time::{self, Timestamp};

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
    /// By name: those with work, and those that are left to remote workers.
    #[serde(default)]
    pub kinds: Vec<KindOut>,
}

/// The work of a kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KindOut {
    pub kind: String,
    /// Whether it is left to remote workers.
    pub remote: bool,
    /// Operations that wait for nothing but a worker.
    pub ready: u64,
    /// Operations that a worker holds.
    pub running: u64,
    /// Operations that await their completion.
    pub awaiting: u64,
    /// When a remote worker last asked for it, as far as is known.
    pub asked_at: Option<String>,
}

impl KindOut {
    fn new(load: &KindLoad, asked_at: Option<Time>) -> Self {
        Self {
            kind: load.kind.to_string(),
            remote: load.is_remote,
            ready: load.ready,
            running: load.running,
            awaiting: load.awaiting,
            asked_at: asked_at.map(|at| Timestamp(at).to_string()),
        }
    }

    fn is_shown(&self) -> bool {
        self.remote || self.ready + self.running + self.awaiting > 0
    }

    /// Adds the same kind of another partition.
    fn merge(&mut self, other: Self) {
        self.remote |= other.remote;
        self.ready += other.ready;
        self.running += other.running;
        self.awaiting += other.awaiting;
        self.asked_at = self.asked_at.take().max(other.asked_at);
    }
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
        let mut kinds: BTreeMap<String, KindOut> = BTreeMap::new();
        let mut minutes: BTreeMap<String, MinuteSample> = BTreeMap::new();
        for part in parts {
            counts.add(&part.counts);
            groups.extend(part.groups);
            for kind in part.kinds {
                match kinds.get_mut(&kind.kind) {
                    Some(known) => known.merge(kind),
                    None => drop(kinds.insert(kind.kind.clone(), kind)),
                }
            }
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
        let (minutes, kinds) = (minutes.into_values().skip(past).collect(), kinds.into_values().collect());
        Self { counts, minutes, groups, kinds }
    }
}

/// How much harm the queue of a group does: operations times milliseconds.
fn harm(group: &Value, now: Time) -> u128 {
    let head_at = group["head"]["created_at"].as_str().and_then(time::parse);
    let depth = group["alike"]["operations"].as_u64().or_else(|| group["depth"].as_u64());
    u128::from(depth.unwrap_or_default()) * head_at.map_or(0, |at| now.since(at).as_millis())
}

/// What takes a scan to find out: the groups in which most work waits longest, and the work of each
/// kind.
#[derive(Clone, Debug)]
struct ScannedWork {
    groups: Vec<WaitingGroup>,
    kinds: Vec<(KindLoad, Option<Time>)>,
}

/// The scanned work, as last read: many may look at once.
#[derive(Debug, Default)]
pub(crate) struct GroupRanking(Mutex<Option<(Instant, ScannedWork)>>);

impl GroupRanking {
    async fn read(&self, engine: &Engine) -> tidegate::Result<ScannedWork> {
        let mut last = self.0.lock().await;
        if let Some((at, work)) = &*last
            && at.elapsed() < RANKING_VALID
        {
            return Ok(work.clone());
        }
        let (groups, kinds) = tokio::try_join!(engine.waiting_groups(GROUPS, GENERATION), engine.kinds())?;
        let work = ScannedWork { groups, kinds };
        *last = Some((Instant::now(), work.clone()));
        Ok(work)
    }
}

pub(super) async fn show(State(app): State<SharedPartition>) -> HandlerResult {
    let (activity, work) = tokio::try_join!(app.engine.activity(), app.ranking.read(&app.engine))?;
    let ScannedWork { groups, kinds } = work;
    let now = app.server.clock.now();
    let partition = app.engine.partition();
    let seqs = groups.iter().flat_map(|group| GroupOut::seqs_of(&group.view));
    let outlines = read_outlines(&app, seqs).await;
    let to_json = |group: &WaitingGroup| {
        let out = GroupOut::new(partition, &group.view, group.why.as_ref());
        let out = out.with_outlines(&group.view, &outlines).with_drains_at(group.drains_at);
        let out = out.with_alike(group.alike.as_ref());
        serde_json::to_value(out).unwrap_or_default()
    };
    let summary = SummaryOut {
        counts: CountsOut::new(&activity.counts),
        minutes: app.history.minutes(now, &activity),
        groups: groups.iter().map(to_json).collect(),
        kinds: sorted_kinds(&kinds),
    };
    Ok(Json(summary).into_response())
}

/// The kinds with work and those of remote workers, by name.
fn sorted_kinds(kinds: &[(KindLoad, Option<Time>)]) -> Vec<KindOut> {
    let kinds = kinds.iter().map(|(load, asked_at)| KindOut::new(load, *asked_at));
    let mut kinds: Vec<KindOut> = kinds.filter(KindOut::is_shown).collect();
    kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    kinds
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
            kinds: vec![KindOut {
                kind: "resize".to_owned(),
                remote: true,
                ready: succeeded,
                running: 1,
                awaiting: 0,
                asked_at: (succeeded == 2).then(|| at.to_owned()),
            }],
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
        let kind = &all.kinds[0];
        assert_eq!((all.kinds.len(), kind.ready, kind.running), (1, 7, 3));
        assert_eq!(kind.asked_at.as_deref(), Some("2030-01-01T00:00:00.000Z"), "the latest that is known");
    }
}
