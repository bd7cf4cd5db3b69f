//! Ownership: one at a time, epochs that grow, and an old epoch that changes nothing.

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_store::log::{Batch, Lsn, Ownership, Retention, Tenancy};
use tidegate_store::{Clock, Kind, Log, Result, codec};

use super::mirror::Mirror;
use super::{Office, PARTITION, TTL};
use crate::dice::Dice;
use crate::harness::{Backend, Must};
use crate::samples::Author;

#[track_caller]
fn refused<T>(answer: Result<T>, kind: Kind, what: &str) {
    assert_eq!(answer.err().map(|error| error.kind()), Some(kind), "{what}");
}

/// While one holds a partition nobody else gets it; once it was given back or ran out, the next has a later epoch.
pub async fn one_owner_at_a_time(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.must("open the store");
    let first = store.own(PARTITION, "first", TTL).await.must("own a free partition");
    assert_eq!((first.partition, first.until), (PARTITION, clock.now().after(TTL)));
    refused(store.own(PARTITION, "second", TTL).await, Kind::Held, "owned while it is held");
    clock.set(first.until.before(std::time::Duration::from_micros(1)));
    refused(store.own(PARTITION, "second", TTL).await, Kind::Held, "owned just before the end");
    clock.set(first.until);
    let second = store.own(PARTITION, "second", TTL).await.must("own what ran out");
    assert!(second.epoch > first.epoch, "the epoch grows when an owner ran out");
    store.release(second).await.must("release");
    let third = store.own(PARTITION, "third", TTL).await.must("own what was given back");
    assert!(third.epoch > second.epoch, "the epoch grows when an owner gave back");
}

/// Renewing counts from now on and keeps the epoch.
pub async fn renewing_keeps_the_partition(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.must("open the store");
    let mut owner = store.own(PARTITION, "first", TTL).await.must("own a free partition");
    for _ in 0..3 {
        clock.advance(TTL / 2);
        let renewed = store.renew(owner, TTL).await.must("renew");
        assert_eq!(renewed, Ownership { until: clock.now().after(TTL), ..owner });
        owner = renewed;
        refused(store.own(PARTITION, "second", TTL).await, Kind::Held, "owned while it is renewed");
    }
    store.append(owner, Batch::default()).await.must("append after renewing");
}

/// Whoever asks sees who owns what: from the moment it is owned, through a renewal, until it is given back or runs out.
pub async fn owners_are_listed_while_they_own(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.must("open the store");
    let listed = async |what: &str, expected: &[(&str, Ownership)]| {
        let owners = store.owners().await.must("list owners");
        let expected: Vec<_> = expected
            .iter()
            .map(|(node, owner)| Tenancy {
                partition: owner.partition,
                node: (*node).to_owned(),
                epoch: owner.epoch,
                until: owner.until,
            })
            .collect();
        assert_eq!(owners, expected, "{what}");
    };
    listed("before anybody owns", &[]).await;
    let second = store.own(PARTITION + 1, "second", TTL).await.must("own");
    let first = store.own(PARTITION, "first", TTL).await.must("own");
    listed("two owners, by partition", &[("first", first), ("second", second)]).await;
    clock.advance(TTL / 2);
    let first = store.renew(first, TTL).await.must("renew");
    listed("one of them renewed", &[("first", first), ("second", second)]).await;
    clock.set(second.until);
    listed("one of them ran out", &[("first", first)]).await;
    store.release(first).await.must("release");
    listed("the other gave back", &[]).await;
}

/// Epochs grow over restarts too: a store that forgot them could not fence.
pub async fn epochs_grow_over_restarts(backend: &dyn Backend) {
    let mut last = None;
    for round in 0..4 {
        let office = Office::enter(backend, PARTITION).await;
        assert!(Some(office.owner.epoch) > last, "restart {round}: the epoch did not grow");
        last = Some(office.owner.epoch);
        if round % 2 == 0 {
            office.store.release(office.owner).await.must("release");
        }
    }
}

/// A new owner exists: whatever the old one does is refused as `Fenced` and changes nothing, not even the new
/// owner's time.
pub async fn an_old_epoch_changes_nothing(backend: &dyn Backend) {
    let clock = backend.clock();
    let mut author = Author::new(Dice::seeded_or(21));
    let mut mirror = Mirror::default();
    let old = Office::enter(backend, PARTITION).await;
    for _ in 0..5 {
        let batch = author.sized_batch(4, clock.now());
        mirror.note(&batch);
        old.append(batch).await;
    }
    clock.advance(TTL);
    let new = old.store.own(PARTITION, "new", TTL).await.must("own what ran out");
    let late = author.sized_batch(3, clock.now());
    refused(old.store.append(old.owner, late.clone()).await, Kind::Fenced, "appended with an old epoch");
    refused(old.store.append(old.owner, Batch::default()).await, Kind::Fenced, "appended nothing");
    refused(old.store.renew(old.owner, TTL).await, Kind::Fenced, "renewed with an old epoch");
    let parts: Vec<Bytes> = vec![codec::encode(&author.facts())];
    refused(old.store.snapshot(old.owner, Lsn(3), parts).await, Kind::Fenced, "snapshot of an old epoch");
    let all = Retention { ended_before: Time::MAX, most: 1_000 };
    refused(old.store.sweep(old.owner, all).await, Kind::Fenced, "swept with an old epoch");
    mirror.check(&*old.store, PARTITION, "after an old owner's attempts").await;
    let image = backend.crash().await.must("take a crash image");
    mirror.check(&*image, PARTITION, "in the image after an old owner's attempts").await;
    // Whether giving back too late is an error is the backend's own business; that it takes nothing away is not.
    drop(old.store.release(old.owner).await);
    refused(old.store.own(PARTITION, "third", TTL).await, Kind::Held, "an old owner released the new one");
    mirror.note(&late);
    assert_eq!(old.store.append(new, late).await.must("append as the new owner"), mirror.last);
    mirror.check(&*old.store, PARTITION, "after the new owner's append").await;
}

/// What is done to one partition is not seen in another: owners, numbers, facts, operations.
pub async fn partitions_are_apart(backend: &dyn Backend) {
    let now = backend.clock().now();
    let store = backend.open().await.must("open the store");
    let ids = [0, 1, u16::MAX];
    let mut sides = Vec::new();
    for id in ids {
        let owner = store.own(id, "suite", TTL).await.must("own each partition");
        let author = Author::new(Dice::seeded_or(22 + u64::from(id)));
        sides.push((owner, author, Mirror::default()));
    }
    for round in 0..12 {
        let (owner, author, mirror) = &mut sides[round % ids.len()];
        let batch = author.sized_batch(round, now);
        mirror.note(&batch);
        assert_eq!(store.append(*owner, batch).await.must("append"), mirror.last);
    }
    let (owner, author, mirror) = &mut sides[0];
    let facts = author.facts();
    store.snapshot(*owner, Lsn(2), vec![codec::encode(&facts)]).await.must("snapshot one partition");
    mirror.snapshot(Lsn(2), facts);
    let swept = Retention { ended_before: Time::MAX, most: 1_000 };
    store.sweep(*owner, swept).await.must("sweep one partition");
    mirror.stored.retain(|_, stored| stored.result.is_none());
    for (owner, _, mirror) in &sides {
        let when = format!("in partition {}", owner.partition);
        mirror.check(&*store, owner.partition, &when).await;
        assert_stored_count(&*store, owner.partition, mirror.stored.len()).await;
    }
}

async fn assert_stored_count<L: Log + ?Sized>(log: &L, partition: u16, wanted: usize) {
    let query = tidegate_store::log::Query { limit: 1_000, ..Default::default() };
    let page = log.list(partition, query).await.must("list");
    assert_eq!(page.items.len(), wanted, "operations in partition {partition}");
}
