//! Snapshots: the new prefix or the old one, never a mixture, and everything later stays.

use std::sync::Arc;

use tidegate_core::Fact;
use tidegate_store::log::Lsn;
use tidegate_store::{Clock, codec};

use super::mirror::{LoadedLog, Mirror, same};
use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

/// Replaces everything up to `upto` in log and mirror, in parts of two facts.
pub(super) async fn replace(owned: &OwnedPartition, mirror: &mut Mirror, upto: Lsn, facts: Vec<Fact>) {
    let parts = facts.chunks(2).map(codec::encode).collect();
    owned.store.snapshot(owned.owner, upto, parts).await.expect_value("replace what came before");
    mirror.snapshot(upto, facts);
}

/// A replay returns the parts of the last snapshot, then every later append: in the store, in an
/// image, after a restart, and also when a snapshot replaces a snapshot.
pub async fn a_snapshot_replaces_what_came_before(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(51));
    let mut mirror = Mirror::default();
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    for behind in [0, 3, 1, 0] {
        for _ in 0..6 {
            let batch = author.sized_batch(2, backend.clock().now());
            mirror.note(&batch);
            owned.append(batch).await;
        }
        let upto = Lsn(mirror.last.0 - behind);
        replace(&owned, &mut mirror, upto, author.facts()).await;
        mirror.check(&*owned.store, PARTITION, "after a snapshot").await;
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, "in the image after a snapshot").await;
        let batch = author.sized_batch(2, backend.clock().now());
        mirror.note(&batch);
        owned.append(batch).await;
        mirror.check(&*owned.store, PARTITION, "after a snapshot and an append").await;
        drop(owned);
        owned = OwnedPartition::open(backend, PARTITION).await;
        mirror.check(&*owned.store, PARTITION, "after a snapshot and a restart").await;
    }
}

/// An image taken while a snapshot is made holds the old prefix or the new one.
pub async fn a_snapshot_is_all_or_nothing(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(52));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    for _ in 0..6 {
        for _ in 0..10 {
            let batch = author.batch(backend.clock().now());
            mirror.note(&batch);
            owned.append(batch).await;
        }
        let facts: Vec<Fact> = (0..400).flat_map(|_| author.facts()).collect();
        let parts = facts.chunks(50).map(codec::encode).collect();
        let upto = Lsn(mirror.last.0 - 2);
        let old = mirror.expected_load();
        mirror.snapshot(upto, facts);
        let (store, owner) = (Arc::clone(&owned.store), owned.owner);
        let snapshot = tokio::spawn(async move { store.snapshot(owner, upto, parts).await });
        loop {
            let is_over = snapshot.is_finished();
            let image = backend.crash_image().await.expect_value("take a crash image");
            let found = LoadedLog::load(&*image, PARTITION).await;
            if is_over || found != old {
                same(&found, &mirror.expected_load(), "in an image during a snapshot");
            }
            if is_over {
                break;
            }
            tokio::task::yield_now().await;
        }
        snapshot.await.expect_value("join the snapshot").expect_value("make a snapshot");
        mirror.check(&*owned.store, PARTITION, "after the snapshot").await;
    }
}

/// After a snapshot of everything the log is empty, and still the next append has the next number.
pub async fn numbers_go_on_after_a_snapshot(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(53));
    let mut mirror = Mirror::default();
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    for _ in 0..4 {
        let batch = author.batch(backend.clock().now());
        mirror.note(&batch);
        owned.append(batch).await;
    }
    replace(&owned, &mut mirror, Lsn(4), author.facts()).await;
    mirror.check(&*owned.store, PARTITION, "when everything is in the snapshot").await;
    drop(owned);
    owned = OwnedPartition::open(backend, PARTITION).await;
    mirror.check(&*owned.store, PARTITION, "after a restart on a snapshot alone").await;
    let batch = author.batch(backend.clock().now());
    mirror.note(&batch);
    assert_eq!(owned.append(batch).await, Lsn(5));
    mirror.check(&*owned.store, PARTITION, "after the append that follows").await;
}
