//! Appends: all or nothing, durable once they return, in order.

use std::sync::Arc;

use tidegate_store::log::{Batch, Lsn};
use tidegate_store::outbox::OutboxId;
use tidegate_store::{Clock, StoreErrorKind};

use super::mirror::{LoadedLog, Mirror, same};
use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

/// An empty partition has nothing to replay and ends at 0; then each append has the next number,
/// whatever its content.
pub async fn appends_are_numbered_one_by_one(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(11));
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let empty = LoadedLog::load(&*owned.store, PARTITION).await;
    assert_eq!(empty, LoadedLog { last: Lsn(0), facts: Vec::new() }, "an empty partition");
    for wanted in 1..=20 {
        let batch = if wanted % 5 == 0 { Batch::default() } else { author.batch(backend.clock().now()) };
        assert_eq!(owned.append(batch).await, Lsn(wanted));
    }
    drop(owned);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    assert_eq!(owned.append(Batch::default()).await, Lsn(21), "numbers go on after a restart");
}

/// An append that names the one it follows is refused when that is not the last one: nothing builds
/// on a failed append.
pub async fn an_append_stands_only_on_the_one_it_follows(backend: &dyn Backend) {
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let after = |lsn| Batch { follows: Some(Lsn(lsn)), ..Batch::default() };
    assert_eq!(owned.append(after(0)).await, Lsn(1));
    assert_eq!(owned.append(after(1)).await, Lsn(2));
    for wrong in [0, 1, 3, 9] {
        let refused = owned.store.append(owned.owner, after(wrong)).await;
        assert_eq!(
            refused.map_err(|error| error.kind()),
            Err(StoreErrorKind::Unavailable),
            "follows {wrong}"
        );
    }
    assert_eq!(LoadedLog::load(&*owned.store, PARTITION).await.last, Lsn(2), "nothing of them is there");
    assert_eq!(owned.append(after(2)).await, Lsn(3));
}

/// OPS-8: an append that drains a missing outbox row is refused as a whole; so is one to a store
/// without an outbox.
pub async fn an_append_takes_out_of_the_outbox_only_what_is_there(backend: &dyn Backend) {
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let missing = Batch { drained: vec![OutboxId(1_000_007)], ..Batch::default() };
    let refused = owned.store.append(owned.owner, missing).await.map_err(|error| error.kind());
    let wanted =
        if owned.store.outbox().is_some() { StoreErrorKind::Unavailable } else { StoreErrorKind::Invalid };
    assert_eq!(refused, Err(wanted));
    assert_eq!(LoadedLog::load(&*owned.store, PARTITION).await.last, Lsn(0), "nothing of it is there");
}

/// OPS-8: a completed append is found after everything stops right then.
pub async fn an_append_is_durable_when_answered(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(12));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    for round in 0..25 {
        let batch = author.batch(backend.clock().now());
        mirror.note(&batch);
        owned.append(batch).await;
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, &format!("in the image after append {}", round + 1)).await;
    }
}

/// OPS-8: an image taken at any moment holds whole appends only: facts, operations and results
/// together.
pub async fn an_append_is_all_or_nothing(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(13));
    let mut before = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    for round in 0..8 {
        let batch = author.sized_batch(200, backend.clock().now());
        let mut after = before.clone();
        after.note(&batch);
        let (store, owner) = (Arc::clone(&owned.store), owned.owner);
        let append = tokio::spawn(async move { store.append(owner, batch).await });
        loop {
            let is_over = append.is_finished();
            let image = backend.crash_image().await.expect_value("take a crash image");
            let found = LoadedLog::load(&*image, PARTITION).await;
            let is_in = found.last == after.last;
            let wanted = if is_in { &after } else { &before };
            let when = format!("in an image during append {}", round + 1);
            same(&found, &wanted.expected_load(), &when);
            // A server's image stays live, so what is read later than the replay may be newer than
            // it.
            if is_in {
                wanted.check_stored(&*image, PARTITION, &when).await;
            }
            if is_over {
                break;
            }
            tokio::task::yield_now().await;
        }
        append.await.expect_value("join the append").expect_value("append a batch");
        before = after;
        before.check(&*owned.store, PARTITION, "after the append").await;
    }
}

/// A batch that a log refuses (here: an operation with a duplicate sequence number) leaves nothing
/// behind.
pub async fn half_a_refused_batch_is_not_kept(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(14));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let first = author.sized_batch(3, backend.clock().now());
    mirror.note(&first);
    owned.append(first.clone()).await;
    let mut bad = author.sized_batch(3, backend.clock().now());
    bad.operations.push(first.operations[0].clone());
    let new = bad.operations[0].seq;
    if owned.store.append(owned.owner, bad.clone()).await.is_err() {
        mirror.check(&*owned.store, PARTITION, "after a batch was refused").await;
        let found = owned.store.read(PARTITION, vec![new]).await.expect_value("read");
        assert_eq!(found, [None], "an operation of a refused batch was kept");
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, "in the image after a batch was refused").await;
    } else {
        mirror.note(&bad);
        same(&LoadedLog::load(&*owned.store, PARTITION).await, &mirror.expected_load(), "after it was taken");
    }
}

/// OPS-8: for any sequence of appends, snapshots and restarts, every image along the way replays to
/// exactly what was appended, in order.
pub async fn what_was_appended_comes_back_exactly(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(15));
    let mut mirror = Mirror::default();
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    for step in 0..60 {
        match author.rng.below(10) {
            0 if mirror.last > Lsn(0) => {
                let upto = Lsn(author.rng.within(mirror.base_upto.0.max(1)..mirror.last.0 + 1));
                super::snapshot::replace(&owned, &mut mirror, upto, author.facts()).await;
            }
            1 => {
                drop(owned);
                owned = OwnedPartition::open(backend, PARTITION).await;
            }
            _ => {
                let batch = author.batch(backend.clock().now());
                mirror.note(&batch);
                assert_eq!(owned.append(batch).await, mirror.last);
            }
        }
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, &format!("in the image after step {step}")).await;
    }
    mirror.check(&*owned.store, PARTITION, "at the end").await;
}
