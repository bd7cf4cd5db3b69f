//! Retention: removes what ended before a time, nothing else, and never too much at once.

use std::time::Duration;

use tidegate_core::{Seq, Time};
use tidegate_store::Clock;
use tidegate_store::log::{Batch, Retention};

use super::mirror::Mirror;
use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

const HOUR: Duration = Duration::from_secs(3_600);

/// Writes five hours of operations, of which every third has ended at once.
async fn aged(backend: &dyn Backend, seed: u64) -> (OwnedPartition, Mirror, BatchWriter) {
    let mut author = BatchWriter::new(TestRng::seeded_or(seed));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    for _ in 0..5 {
        let now = backend.clock().advance(HOUR);
        let batch = author.sized_batch(12, now);
        mirror.note(&batch);
        owned.append(batch).await;
    }
    (owned, mirror, author)
}

fn ended_before(mirror: &Mirror, time: Time) -> Vec<Seq> {
    let old = mirror.stored.values().filter(|s| s.result.as_ref().is_some_and(|result| result.at < time));
    old.map(|stored| stored.operation.seq).collect()
}

/// A sweep removes what ended before the time, and keeps what ended at it or later and what has not
/// ended, whatever its age; a rerun operation has not ended. The replay is unaffected.
pub async fn a_sweep_takes_only_what_ended_before(backend: &dyn Backend) {
    let (owned, mut mirror, _) = aged(backend, 61).await;
    let reopened = Batch { reopened: vec![Seq(1)], ..Batch::default() };
    mirror.note(&reopened);
    owned.append(reopened).await;
    let third_hour = backend.clock().now().before(2 * HOUR);
    for ended_before_time in [Time::ZERO, third_hour, Time::MAX] {
        let gone = ended_before(&mirror, ended_before_time);
        let retention = Retention { ended_before: ended_before_time, most: 1_000 };
        let swept = owned.store.sweep(owned.owner, retention).await.expect_value("sweep");
        assert_eq!(swept, gone.len(), "operations swept that ended before {ended_before_time:?}");
        mirror.stored.retain(|seq, _| !gone.contains(seq));
        mirror.check(&*owned.store, PARTITION, "after a sweep").await;
        let found = owned.store.read(PARTITION, gone.clone()).await.expect_value("read what was swept");
        assert!(found.iter().all(Option::is_none), "what was swept can still be read");
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, "in the image after a sweep").await;
        let query = tidegate_store::log::StoredQuery { limit: 1_000, ..Default::default() };
        let page = owned.store.list(PARTITION, query.clone()).await.expect_value("list");
        assert!(page.items == mirror.listed(&query), "the list does not agree with the sweep");
    }
    assert_eq!(mirror.stored.len(), 41, "what has not ended is kept: 40 of 60, and one that runs again");
    drop(owned);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    mirror.check(&*owned.store, PARTITION, "after a restart").await;
}

/// A sweep removes at most the allowed number; called again it continues, until there is nothing
/// left to remove.
pub async fn a_sweep_is_bounded(backend: &dyn Backend) {
    let (owned, mirror, _) = aged(backend, 62).await;
    let all = ended_before(&mirror, Time::MAX).len();
    let retention = Retention { ended_before: Time::MAX, most: 7 };
    let mut left = all;
    while left > 0 {
        let swept = owned.store.sweep(owned.owner, retention).await.expect_value("sweep");
        assert_eq!(swept, left.min(7), "swept of {left} that may go, at most 7");
        left -= swept;
        let query = tidegate_store::log::StoredQuery { limit: 1_000, ..Default::default() };
        let kept = owned.store.list(PARTITION, query).await.expect_value("list").items.len();
        assert_eq!(kept, mirror.stored.len() - (all - left), "operations kept");
    }
    assert_eq!(owned.store.sweep(owned.owner, retention).await.expect_value("sweep"), 0);
    let nothing = Retention { ended_before: Time::MAX, most: 0 };
    assert_eq!(owned.store.sweep(owned.owner, nothing).await.expect_value("sweep nothing"), 0);
}
