//! Ownership: one owner at a time, epochs that grow, and an old epoch that changes nothing.

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_store::log::{Batch, Lsn, Ownership, PartitionOwner, Retention};
use tidegate_store::{Clock, Log, Result, StoreErrorKind, codec};

use super::mirror::Mirror;
use super::{OwnedPartition, PARTITION, TTL};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

#[track_caller]
fn assert_refused<T>(answer: Result<T>, kind: StoreErrorKind, what: &str) {
    assert_eq!(answer.err().map(|error| error.kind()), Some(kind), "{what}");
}

/// While a partition is held no one else gets it; once it is released or expires, the next owner
/// has a later epoch.
pub async fn one_owner_at_a_time(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.expect_value("open the store");
    let first = store.acquire_partition(PARTITION, "first", TTL).await.expect_value("own a free partition");
    assert_eq!((first.partition, first.until), (PARTITION, clock.now().after(TTL)));
    assert_refused(
        store.acquire_partition(PARTITION, "second", TTL).await,
        StoreErrorKind::Held,
        "owned while it is held",
    );
    clock.set(first.until.before(std::time::Duration::from_micros(1)));
    assert_refused(
        store.acquire_partition(PARTITION, "second", TTL).await,
        StoreErrorKind::Held,
        "owned just before the end",
    );
    clock.set(first.until);
    let second = store.acquire_partition(PARTITION, "second", TTL).await.expect_value("own what ran out");
    assert!(second.epoch > first.epoch, "the epoch grows when an owner ran out");
    store.release(second).await.expect_value("release");
    let third =
        store.acquire_partition(PARTITION, "third", TTL).await.expect_value("own what was given back");
    assert!(third.epoch > second.epoch, "the epoch grows when an owner gave back");
}

/// A renewal counts from now on and keeps the epoch.
pub async fn renewing_keeps_the_partition(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.expect_value("open the store");
    let mut owner =
        store.acquire_partition(PARTITION, "first", TTL).await.expect_value("own a free partition");
    for _ in 0..3 {
        clock.advance(TTL / 2);
        let renewed = store.renew(owner, TTL).await.expect_value("renew");
        assert_eq!(renewed, Ownership { until: clock.now().after(TTL), ..owner });
        owner = renewed;
        assert_refused(
            store.acquire_partition(PARTITION, "second", TTL).await,
            StoreErrorKind::Held,
            "owned while it is renewed",
        );
    }
    store.append(owner, Batch::default()).await.expect_value("append after renewing");
}

/// Owners are listed from the moment of acquisition, through a renewal, until they release or
/// expire.
pub async fn owners_are_listed_while_they_own(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.expect_value("open the store");
    let listed = async |what: &str, expected: &[(&str, Ownership)]| {
        let owners = store.partition_owners().await.expect_value("list owners");
        let expected: Vec<_> = expected
            .iter()
            .map(|(node, owner)| PartitionOwner {
                partition: owner.partition,
                node: (*node).to_owned(),
                epoch: owner.epoch,
                until: owner.until,
            })
            .collect();
        assert_eq!(owners, expected, "{what}");
    };
    listed("before anybody owns", &[]).await;
    let second = store.acquire_partition(PARTITION + 1, "second", TTL).await.expect_value("own");
    let first = store.acquire_partition(PARTITION, "first", TTL).await.expect_value("own");
    listed("two owners, by partition", &[("first", first), ("second", second)]).await;
    clock.advance(TTL / 2);
    let first = store.renew(first, TTL).await.expect_value("renew");
    listed("one of them renewed", &[("first", first), ("second", second)]).await;
    clock.set(second.until);
    listed("one of them ran out", &[("first", first)]).await;
    store.release(first).await.expect_value("release");
    listed("the other gave back", &[]).await;
}

/// Epochs grow across restarts too: a store that forgot them could not fence.
pub async fn epochs_grow_over_restarts(backend: &dyn Backend) {
    let mut last = None;
    for round in 0..4 {
        let owned = OwnedPartition::open(backend, PARTITION).await;
        assert!(Some(owned.owner.epoch) > last, "restart {round}: the epoch did not grow");
        last = Some(owned.owner.epoch);
        if round % 2 == 0 {
            owned.store.release(owned.owner).await.expect_value("release");
        }
    }
}

/// With a new owner, whatever the old one does is refused as `Fenced` and changes nothing, not even
/// the new owner's expiry.
pub async fn an_old_epoch_changes_nothing(backend: &dyn Backend) {
    let clock = backend.clock();
    let mut author = BatchWriter::new(TestRng::seeded_or(21));
    let mut mirror = Mirror::default();
    let old = OwnedPartition::open(backend, PARTITION).await;
    for _ in 0..5 {
        let batch = author.sized_batch(4, clock.now());
        mirror.note(&batch);
        old.append(batch).await;
    }
    clock.advance(TTL);
    let new = old.store.acquire_partition(PARTITION, "new", TTL).await.expect_value("own what ran out");
    let late = author.sized_batch(3, clock.now());
    assert_refused(
        old.store.append(old.owner, late.clone()).await,
        StoreErrorKind::Fenced,
        "appended with an old epoch",
    );
    assert_refused(
        old.store.append(old.owner, Batch::default()).await,
        StoreErrorKind::Fenced,
        "appended nothing",
    );
    assert_refused(
        old.store.renew(old.owner, TTL).await,
        StoreErrorKind::Fenced,
        "renewed with an old epoch",
    );
    let parts: Vec<Bytes> = vec![codec::encode(&author.facts())];
    assert_refused(
        old.store.snapshot(old.owner, Lsn(3), parts).await,
        StoreErrorKind::Fenced,
        "snapshot of an old epoch",
    );
    let all = Retention { ended_before: Time::MAX, most: 1_000 };
    assert_refused(old.store.sweep(old.owner, all).await, StoreErrorKind::Fenced, "swept with an old epoch");
    mirror.check(&*old.store, PARTITION, "after an old owner's attempts").await;
    let image = backend.crash_image().await.expect_value("take a crash image");
    mirror.check(&*image, PARTITION, "in the image after an old owner's attempts").await;
    // Whether a late release is an error is up to the backend; it must not take anything away.
    drop(old.store.release(old.owner).await);
    assert_refused(
        old.store.acquire_partition(PARTITION, "third", TTL).await,
        StoreErrorKind::Held,
        "an old owner released the new one",
    );
    mirror.note(&late);
    assert_eq!(old.store.append(new, late).await.expect_value("append as the new owner"), mirror.last);
    mirror.check(&*old.store, PARTITION, "after the new owner's append").await;
}

/// Partitions are isolated: owners, numbers, facts, operations.
pub async fn partitions_are_apart(backend: &dyn Backend) {
    let now = backend.clock().now();
    let store = backend.open().await.expect_value("open the store");
    let ids = [0, 1, u16::MAX];
    let mut sides = Vec::new();
    for id in ids {
        let owner = store.acquire_partition(id, "suite", TTL).await.expect_value("own each partition");
        let author = BatchWriter::new(TestRng::seeded_or(22 + u64::from(id)));
        sides.push((owner, author, Mirror::default()));
    }
    for round in 0..12 {
        let (owner, author, mirror) = &mut sides[round % ids.len()];
        let batch = author.sized_batch(round, now);
        mirror.note(&batch);
        assert_eq!(store.append(*owner, batch).await.expect_value("append"), mirror.last);
    }
    let (owner, author, mirror) = &mut sides[0];
    let facts = author.facts();
    store.snapshot(*owner, Lsn(2), vec![codec::encode(&facts)]).await.expect_value("snapshot one partition");
    mirror.snapshot(Lsn(2), facts);
    let swept = Retention { ended_before: Time::MAX, most: 1_000 };
    store.sweep(*owner, swept).await.expect_value("sweep one partition");
    mirror.stored.retain(|_, stored| stored.result.is_none());
    for (owner, _, mirror) in &sides {
        let when = format!("in partition {}", owner.partition);
        mirror.check(&*store, owner.partition, &when).await;
        assert_stored_count(&*store, owner.partition, mirror.stored.len()).await;
    }
}

async fn assert_stored_count<L: Log + ?Sized>(log: &L, partition: u16, wanted: usize) {
    let query = tidegate_store::log::StoredQuery { limit: 1_000, ..Default::default() };
    let page = log.list(partition, query).await.expect_value("list");
    assert_eq!(page.items.len(), wanted, "operations in partition {partition}");
}
