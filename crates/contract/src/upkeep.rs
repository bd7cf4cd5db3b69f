//! The suite of `Upkeep`: a store can be migrated again, reports that it is healthy, and counts its
//! content.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tidegate_store::Clock;
use tidegate_store::codec;
use tidegate_store::log::{Lsn, Retention};
use tidegate_store::upkeep::SECRET_LEN;

use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

/// Migrating an up-to-date store changes nothing; statistics follow appends, snapshots and sweeps.
pub async fn a_store_says_what_it_holds(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(81));
    let store = backend.open().await.expect_value("open the store");
    let owner =
        store.acquire_partition(0, "suite", Duration::from_secs(60)).await.expect_value("own the partition");
    store.health().await.expect_value("be well");
    assert!(!store.describe().is_empty(), "a store has a word for itself");
    for _ in 0..4 {
        let batch = author.sized_batch(6, backend.clock().now());
        store.append(owner, batch).await.expect_value("append");
    }
    let claim = RecordClaim {
        fingerprint: [7; 32],
        token: HolderToken([1; 16]),
        lease: Duration::from_secs(60),
        ttl: Duration::from_secs(600),
        on_lapse: OnLapse::TakeOver,
    };
    for key in ["one", "two", "one"] {
        store.claim_record(key, claim).await.expect_value("claim a record");
    }
    store.migrate().await.expect_value("migrate what is up to date");
    store.check_layout().await.expect_value("know the layout");
    let stats = store.stats().await.expect_value("ask for figures");
    let kept = (stats.operations, stats.appends, stats.records);
    assert_eq!(kept, (24, 4, 2), "operations, appends and records kept");
    store.snapshot(owner, Lsn(3), vec![codec::encode(&author.facts())]).await.expect_value("make a snapshot");
    let all = Retention { ended_before: Time::MAX, most: 1_000 };
    assert_eq!(store.sweep(owner, all).await.expect_value("sweep"), 8);
    let stats = store.stats().await.expect_value("ask for figures");
    assert_eq!((stats.operations, stats.appends), (16, 1), "operations and appends kept");
    drop(store);
    let store = backend.open().await.expect_value("open the store again");
    let stats = store.stats().await.expect_value("ask for figures");
    assert_eq!((stats.operations, stats.appends), (16, 1), "the same after a restart");
}

/// The first request decides the number of partitions; later ones get that number, also after a
/// restart.
pub async fn the_number_of_partitions_never_changes(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let none = store.ensure_partitions(0).await.err().map(|error| error.kind());
    assert_eq!(none, Some(tidegate_store::StoreErrorKind::Invalid), "a store without a partition");
    assert_eq!(store.ensure_partitions(12).await.expect_value("fix the number"), 12);
    assert_eq!(store.ensure_partitions(3).await.expect_value("ask with another number"), 12);
    drop(store);
    let store = backend.open().await.expect_value("open the store again");
    assert_eq!(store.ensure_partitions(500).await.expect_value("ask after a restart"), 12);
}

/// Of all concurrent offers of a secret one wins; later ones get that secret, also after a restart.
pub async fn one_secret_is_kept(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let beside = backend.open_second(&store).await.expect_value("open another store beside the first");
    let mut offers = tokio::task::JoinSet::new();
    for mark in 1..=8_u8 {
        let store = std::sync::Arc::clone(if mark % 2 == 0 { &store } else { &beside });
        // Its first bit is set, and its halves differ: a wrong number conversion would show.
        offers.spawn(async move { store.ensure_secret(offered(mark)).await });
    }
    let mut kept = Vec::new();
    while let Some(given) = offers.join_next().await {
        kept.push(given.expect_value("offer a secret").expect_value("offer a secret"));
    }
    let first = kept[0];
    assert!((1..=8).any(|mark| offered(mark) == first), "nobody offered {first:?}");
    assert!(kept.iter().all(|one| *one == first), "two secrets were given out");
    drop((store, beside));
    let store = backend.open().await.expect_value("open the store again");
    assert_eq!(store.ensure_secret([0; SECRET_LEN]).await.expect_value("ask after a restart"), first);
}

fn offered(mark: u8) -> [u8; SECRET_LEN] {
    std::array::from_fn(|place| if place < SECRET_LEN / 2 { 0xff - mark } else { mark })
}
