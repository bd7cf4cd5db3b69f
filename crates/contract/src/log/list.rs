//! Lists: newest first, filtered, in pages that cover everything exactly once.

use tidegate_core::{EndState, Seq};
use tidegate_store::log::{StoredEntry, StoredQuery};
use tidegate_store::{Clock, Log};

use super::mirror::Mirror;
use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::{self, BatchWriter};

/// More pages than any list here can need, so that a list that loops ends.
const PAGES_MAX: usize = 2_000;

async fn filled(backend: &dyn Backend, seed: u64) -> (OwnedPartition, Mirror, TestRng) {
    let mut author = BatchWriter::new(TestRng::seeded_or(seed));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    while mirror.stored.len() < 150 {
        let batch = author.batch(backend.clock().now());
        mirror.note(&batch);
        owned.append(batch).await;
    }
    let rng = author.rng.fork();
    (owned, mirror, rng)
}

/// Collects every page of a query, one after the other.
async fn every_page<L: Log + ?Sized>(log: &L, query: StoredQuery) -> Vec<StoredEntry> {
    let mut query = query;
    let mut all = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = log.list(PARTITION, query.clone()).await.expect_value("list a page");
        assert!(page.items.len() <= query.limit, "a page is longer than its limit");
        if let (Some(next), Some(last)) = (page.next, page.items.last()) {
            assert!(next <= last.operation.seq, "the next page would repeat the end of this one");
        }
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        assert!(query.before.is_none_or(|before| next < before), "the cursor does not move on");
        query.before = Some(next);
    }
    assert_eq!(all.len(), usize::MAX, "the list has no end");
    all
}

#[track_caller]
fn same(found: &[StoredEntry], wanted: &[StoredEntry], query: &StoredQuery) {
    let seqs = |list: &[StoredEntry]| list.iter().map(|stored| stored.operation.seq.0).collect::<Vec<_>>();
    assert_eq!(seqs(found), seqs(wanted), "{query:?}");
    assert!(found == wanted, "the listed operations differ, or payloads were not left out: {query:?}");
}

/// Pages of every size together are the whole list, newest first, each operation once.
pub async fn pages_cover_everything_once(backend: &dyn Backend) {
    let (owned, mirror, _) = filled(backend, 41).await;
    for limit in [1, 2, 7, 50, 149, 150, 151, 10_000] {
        let query = StoredQuery { limit, ..StoredQuery::default() };
        same(&every_page(&*owned.store, query.clone()).await, &mirror.listed(&query), &query);
    }
}

/// Filters by group, kind and end, alone and together; a reopened operation has not ended.
pub async fn a_list_filters(backend: &dyn Backend) {
    let (owned, mirror, mut rng) = filled(backend, 42).await;
    let rng = &mut rng;
    for _ in 0..80 {
        let query = StoredQuery {
            group: samples::maybe(rng, samples::name),
            kind: samples::maybe(rng, samples::name),
            ended: samples::maybe(rng, samples::end_state),
            before: samples::maybe(rng, |rng| Seq(rng.within(1..200))),
            limit: rng.within(1..40) as usize,
        };
        same(&every_page(&*owned.store, query.clone()).await, &mirror.listed(&query), &query);
    }
    let nobody = StoredQuery { group: Some("nobody".into()), limit: 10, ..StoredQuery::default() };
    assert!(every_page(&*owned.store, nobody).await.is_empty());
    for ended in [EndState::Succeeded, EndState::Failed, EndState::Canceled] {
        let query = StoredQuery { ended: Some(ended), limit: 1_000, ..StoredQuery::default() };
        assert!(!mirror.listed(&query).is_empty(), "the suite has nothing to find");
    }
}

/// A cursor before the first or after the last operation is no error.
pub async fn a_list_survives_odd_cursors(backend: &dyn Backend) {
    let (owned, mirror, _) = filled(backend, 43).await;
    for before in [0, 1] {
        let query = StoredQuery { before: Some(Seq(before)), limit: 5, ..StoredQuery::default() };
        let page = owned.store.list(PARTITION, query).await.expect_value("list before the first");
        assert!(page.items.is_empty() && page.next.is_none(), "there is nothing before the first");
    }
    for before in [10_000, i64::MAX as u64, u64::MAX] {
        let query = StoredQuery { before: Some(Seq(before)), limit: 30, ..StoredQuery::default() };
        same(&every_page(&*owned.store, query.clone()).await, &mirror.listed(&query), &query);
    }
    let query = StoredQuery { limit: 5, ..StoredQuery::default() };
    let page = owned.store.list(PARTITION + 1, query).await.expect_value("list an empty partition");
    assert!(page.items.is_empty() && page.next.is_none(), "an empty partition has an empty list");
}
