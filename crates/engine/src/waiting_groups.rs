//! The groups of a partition in which most work waits longest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::QUERY_SCAN_MAX;
use tidegate_core::model::GroupView;
use tidegate_store::Clock;

use crate::engine::Engine;
use crate::error::Result;
use crate::query::group_reason;
use crate::view::Reason;

/// A group in which work waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitingGroup {
    /// The group.
    pub view: GroupView,
    /// What it waits for.
    pub why: Option<Reason>,
    /// When the last operation of its queue is expected to start; `None` if that depends on more
    /// than time.
    pub drains_at: Option<Time>,
}

impl Engine {
    /// Lists the groups in which most work waits longest: by the number of operations, multiplied
    /// by the age of the first; at most `most`. All groups are compared, a bounded number at a
    /// time, so that no one else waits long.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn waiting_groups(&self, most: usize) -> Result<Vec<WaitingGroup>> {
        let mut worst = BinaryHeap::new();
        let mut after: Option<Arc<str>> = None;
        loop {
            let (chunk, last) = self
                .query_owner(move |owner| {
                    let now = owner.clock.now();
                    let queues = owner.model.queues(after.as_deref()).take(QUERY_SCAN_MAX);
                    largest(queues.map(|(name, depth, at)| (harm(depth, at, now), name)), most)
                })
                .await?;
            for ranked in chunk {
                keep_largest(&mut worst, ranked, most);
            }
            after = last;
            if after.is_none() {
                break;
            }
        }
        let names: Vec<Arc<str>> =
            worst.into_sorted_vec().into_iter().map(|Reverse((_, name))| name).collect();
        self.query_owner(move |owner| {
            let now = owner.clock.now();
            let look = |name: &Arc<str>| {
                let view = owner.model.group(name)?;
                let why = group_reason(owner, &view);
                let tail = owner.model.group_tail(name).and_then(|tail| owner.model.why(tail, now));
                Some(WaitingGroup { view, why, drains_at: tail.and_then(|tail| tail.starts_at) })
            };
            names.iter().filter_map(look).collect()
        })
        .await
    }
}

/// How much harm a queue does: operations times microseconds.
fn harm(depth: u32, head_at: Time, now: Time) -> u128 {
    u128::from(depth) * now.since(head_at).as_micros().max(1)
}

/// The harm that a queue does, and the name of its group.
type RankedQueue = (u128, Arc<str>);
type HarmHeap = BinaryHeap<Reverse<RankedQueue>>;

/// The queues that do most harm, and the name after which to continue if the scan ended early.
fn largest<'a>(
    queues: impl Iterator<Item = (u128, &'a Arc<str>)>,
    most: usize,
) -> (Vec<RankedQueue>, Option<Arc<str>>) {
    let mut kept = HarmHeap::new();
    let (mut scanned, mut last) = (0, None);
    for (harm, name) in queues {
        (scanned, last) = (scanned + 1, Some(name));
        let is_more = kept.peek().is_none_or(|Reverse((least, _))| harm > *least);
        if kept.len() < most || is_more {
            keep_largest(&mut kept, (harm, Arc::clone(name)), most);
        }
    }
    let next = last.filter(|_| scanned == QUERY_SCAN_MAX).map(Arc::clone);
    (kept.into_iter().map(|Reverse(ranked)| ranked).collect(), next)
}

fn keep_largest(kept: &mut HarmHeap, ranked: RankedQueue, most: usize) {
    kept.push(Reverse(ranked));
    if kept.len() > most {
        kept.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_that_do_most_harm_are_kept() {
        let names: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Arc::from).to_vec();
        let now = Time::from_millis(10_000);
        let queues = [(3, 9_000), (1, 0), (100, 9_990), (2, 9_999)];
        let ranked = names
            .iter()
            .zip(queues)
            .map(|(name, (depth, at))| (harm(depth, Time::from_millis(at), now), name));
        let (mut kept, next) = largest(ranked, 2);
        kept.sort_unstable();
        // Three that wait for a second, and one that waits for ten.
        assert_eq!(kept.iter().map(|(_, name)| &**name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(next, None);
        assert_eq!(
            largest(names.iter().map(|name| (1, name)).cycle().take(QUERY_SCAN_MAX), 1).1.as_deref(),
            Some("d")
        );
        assert_eq!(largest(std::iter::empty(), 2), (Vec::new(), None));
    }
}
