//! The groups of a partition in which most work waits longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::QUERY_SCAN_MAX;
use tidegate_core::model::{GroupView, QueueCause, QueueView};
use tidegate_store::Clock;

use crate::engine::Engine;
use crate::error::Result;
use crate::query::group_reason;
use crate::view::Reason;

/// A group in which work waits, or several that wait for the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitingGroup {
    /// The group; of several, the one that waits longest.
    pub view: GroupView,
    /// What it waits for.
    pub why: Option<Reason>,
    /// When the last operation of its queue is expected to start; `None` if that depends on more
    /// than time.
    pub drains_at: Option<Time>,
    /// The groups that it stands for; `None` if it is the only one.
    pub alike: Option<AlikeGroups>,
}

/// Groups of one kind that wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlikeGroups {
    /// What they wait for.
    pub cause: QueueCause,
    /// The number of groups.
    pub groups: u64,
    /// The number of their operations.
    pub operations: u64,
}

impl Engine {
    /// Lists the groups in which most work waits longest: by the number of operations, multiplied
    /// by the age of the first; at most `most`. Groups of the kind `folded` that wait for the same
    /// are one. All groups are compared, a bounded number at a time, so that no one else waits
    /// long.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn waiting_groups(&self, most: usize, folded: &str) -> Result<Vec<WaitingGroup>> {
        let mut ranking = Ranking::new(most, folded);
        loop {
            ranking = self
                .query_owner(move |owner| {
                    let now = owner.clock.now();
                    let after = ranking.after.take();
                    ranking.add(owner.model.queues(after.as_deref()).take(QUERY_SCAN_MAX), now);
                    ranking
                })
                .await?;
            if ranking.after.is_none() {
                break;
            }
        }
        let ranked = ranking.finish();
        self.query_owner(move |owner| {
            let now = owner.clock.now();
            let look = |(name, alike): &(Arc<str>, Option<AlikeGroups>)| {
                let view = owner.model.group(name)?;
                let why = group_reason(owner, &view);
                let tail = owner.model.group_tail(name).and_then(|tail| owner.model.why(tail, now));
                let drains_at = tail.and_then(|tail| tail.starts_at).filter(|_| alike.is_none());
                Some(WaitingGroup { view, why, drains_at, alike: *alike })
            };
            ranked.iter().filter_map(look).collect()
        })
        .await
    }
}

/// How much harm a queue does: operations times microseconds.
fn harm(queue: &QueueView<'_>, now: Time) -> u128 {
    u128::from(queue.depth) * now.since(queue.head_at).as_micros().max(1)
}

/// The harm that a queue does, and the name of its group.
type RankedQueue = (u128, Arc<str>);

/// Groups that are folded into one.
#[derive(Debug)]
struct Fold {
    harm: u128,
    alike: AlikeGroups,
    /// The one that has waited longest.
    oldest: (Time, Arc<str>),
}

/// The queues that do most harm among those that were looked at.
#[derive(Debug)]
struct Ranking {
    most: usize,
    folded: Arc<str>,
    worst: BinaryHeap<Reverse<RankedQueue>>,
    folds: BTreeMap<QueueCause, Fold>,
    /// The name after which to continue, if there may be more.
    after: Option<Arc<str>>,
}

impl Ranking {
    fn new(most: usize, folded: &str) -> Self {
        let (worst, folds) = (BinaryHeap::new(), BTreeMap::new());
        Self { most, folded: folded.into(), worst, folds, after: None }
    }

    /// Adds at most as many queues as are scanned at once.
    fn add<'a>(&mut self, queues: impl Iterator<Item = QueueView<'a>>, now: Time) {
        let (mut scanned, mut last) = (0, None);
        for queue in queues {
            (scanned, last) = (scanned + 1, Some(queue.name));
            match queue.waits_for {
                Some(cause) if **queue.kind == *self.folded => self.fold(cause, &queue, now),
                _ => self.rank(&queue, now),
            }
        }
        self.after = last.filter(|_| scanned == QUERY_SCAN_MAX).map(Arc::clone);
    }

    fn rank(&mut self, queue: &QueueView<'_>, now: Time) {
        let harm = harm(queue, now);
        let is_more = self.worst.peek().is_none_or(|Reverse((least, _))| harm > *least);
        if self.worst.len() < self.most || is_more {
            self.worst.push(Reverse((harm, Arc::clone(queue.name))));
        }
        if self.worst.len() > self.most {
            self.worst.pop();
        }
    }

    fn fold(&mut self, cause: QueueCause, queue: &QueueView<'_>, now: Time) {
        let fold = self.folds.entry(cause).or_insert_with(|| Fold {
            harm: 0,
            alike: AlikeGroups { cause, groups: 0, operations: 0 },
            oldest: (queue.head_at, Arc::clone(queue.name)),
        });
        fold.harm += harm(queue, now);
        fold.alike.groups += 1;
        fold.alike.operations += u64::from(queue.depth);
        if queue.head_at < fold.oldest.0 {
            fold.oldest = (queue.head_at, Arc::clone(queue.name));
        }
    }

    /// The names of the groups, those that do most harm first, with those that each stands for.
    fn finish(self) -> Vec<(Arc<str>, Option<AlikeGroups>)> {
        let folds = self.folds.into_values().map(|fold| {
            let alike = Some(fold.alike).filter(|alike| alike.groups > 1);
            (fold.harm, fold.oldest.1, alike)
        });
        let groups = self.worst.into_iter().map(|Reverse((harm, name))| (harm, name, None));
        let mut all: Vec<_> = groups.chain(folds).collect();
        all.sort_by(|(a, a_name, _), (b, b_name, _)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
        all.truncate(self.most);
        all.into_iter().map(|(_, name, alike)| (name, alike)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(10_000);

    /// Ranks queues of a name, a kind, a depth, an age in milliseconds and a cause.
    fn ranked(
        most: usize,
        queues: &[(&str, &str, u32, u64, Option<QueueCause>)],
    ) -> Vec<(String, Option<AlikeGroups>)> {
        let owned: Vec<(Arc<str>, Arc<str>)> =
            queues.iter().map(|(name, kind, ..)| ((*name).into(), (*kind).into())).collect();
        let views = owned.iter().zip(queues).map(|((name, kind), &(_, _, depth, age, waits_for))| {
            let head_at = Time::from_millis(10_000 - age);
            QueueView { name, kind, depth, head_at, waits_for }
        });
        let mut ranking = Ranking::new(most, "picture");
        ranking.add(views, NOW);
        ranking.finish().into_iter().map(|(name, alike)| (name.to_string(), alike)).collect()
    }

    #[test]
    fn the_queues_that_do_most_harm_are_kept() {
        let none = Some(QueueCause::Worker);
        let queues = [
            ("a", "http", 3, 1_000, none),
            ("b", "http", 1, 10_000, none),
            ("c", "http", 100, 10, none),
            ("d", "http", 2, 1, none),
        ];
        let names: Vec<String> = ranked(2, &queues).into_iter().map(|(name, _)| name).collect();
        // One that waits for ten seconds, and three that wait for one.
        assert_eq!(names, ["b", "a"]);
        assert_eq!(ranked(2, &[]), []);
        let (name, kind): (Arc<str>, Arc<str>) = ("d".into(), "http".into());
        let queue = QueueView { name: &name, kind: &kind, depth: 1, head_at: NOW, waits_for: none };
        let mut ranking = Ranking::new(1, "picture");
        ranking.add(std::iter::repeat_n(queue, QUERY_SCAN_MAX), NOW);
        assert_eq!(ranking.after.as_deref(), Some("d"), "there may be more");
    }

    /// OPS-24: many groups of one kind that wait for the same push no other group out.
    #[test]
    fn ops_24_groups_that_wait_for_the_same_are_one() {
        let (parked, limit) = (Some(QueueCause::Alternatives(1)), Some(QueueCause::Limit(7)));
        let queues = [
            ("p1", "picture", 1, 5_000, parked),
            ("p2", "picture", 1, 9_000, parked),
            ("p3", "picture", 2, 8_000, parked),
            ("q1", "picture", 1, 4_000, limit),
            ("held", "picture", 1, 3_000, None),
            ("shop", "http", 1, 1_000, parked),
        ];
        let found = ranked(4, &queues);
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["p2", "q1", "held", "shop"]);
        let alike = AlikeGroups { cause: QueueCause::Alternatives(1), groups: 3, operations: 4 };
        assert_eq!((found[0].1, found[1].1), (Some(alike), None));
    }
}
