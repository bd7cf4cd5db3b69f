//! Behaviour specific to a cluster: nodes that fail, and keys in different slots.

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_core::{Fact, Seq, Time};
use tidegate_fixture::redis::RedisCluster;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep};
use tidegate_store_redis::RedisStore;

use crate::sample::{TTL, accepts, ended, kind};

const PARTITIONS: u16 = 6;

/// OPS-8: one node is killed. The partitions on the others continue; those on that one are reported
/// as unavailable, and recover when it is back, with everything that was acknowledged.
#[tokio::test]
async fn ops_8_a_node_that_goes_and_comes_back_loses_nothing() {
    let mut cluster = RedisCluster::start_with(&["--appendfsync", "always"]);
    let store = RedisStore::open(&cluster.url()).await.unwrap();
    let now = Time::from_millis(1);
    let mut owners = Vec::new();
    for partition in 0..PARTITIONS {
        let owner = store.acquire_partition(partition, "test", TTL).await.unwrap();
        assert_eq!(store.append(owner, accepts(1..4, now)).await.unwrap(), Lsn(1));
        owners.push(owner);
    }
    cluster.kill(0);
    let mut reached = Vec::new();
    for owner in &owners {
        match store.append(*owner, accepts(4..5, now)).await {
            Ok(lsn) => reached.push(lsn),
            Err(error) => assert!(
                matches!(error.kind(), StoreErrorKind::Unsure | StoreErrorKind::Unavailable),
                "{error}"
            ),
        }
    }
    assert!(!reached.is_empty() && reached.len() < owners.len(), "one node of three was killed: {reached:?}");
    cluster.restart(0);
    for partition in 0..PARTITIONS {
        let owner = store.acquire_partition(partition, "test", TTL).await.unwrap();
        let mut seqs = Vec::new();
        let mut replay = |facts: Vec<Fact>| {
            seqs.extend(facts.into_iter().filter_map(|fact| match fact {
                Fact::CancelRequested { seq } => Some(seq.0),
                _ => None,
            }));
        };
        let last = store.load(partition, &mut replay).await.unwrap();
        assert_eq!(seqs, (1..last.0 + 3).collect::<Vec<_>>(), "partition {partition}");
        let results = Batch { results: vec![ended(1, now)], ..Batch::default() };
        assert_eq!(store.append(owner, results).await.unwrap(), Lsn(last.0 + 1));
        assert!(store.read(partition, vec![Seq(1)]).await.unwrap()[0].as_ref().unwrap().result.is_some());
    }
    assert!(store.health().await.is_ok());
}

/// LIM-7: buckets of one family are taken together; for different families that is rejected with a
/// message, not done by halves.
#[tokio::test]
async fn lim_7_buckets_of_one_family_are_taken_together() {
    let cluster = RedisCluster::start();
    let store = RedisStore::open(&cluster.url()).await.unwrap();
    let want = |name: &str| ReservationRequest {
        name: name.into(),
        cost: MICRO,
        capacity: 5 * MICRO,
        refill_per_s: 0,
    };
    let together = store.reserve(vec![want("shop/points"), want("shop/calls")]).await.unwrap();
    assert_eq!(together, ReserveOutcome::Granted { remaining: vec![4 * MICRO; 2] });
    let apart = vec![want("shop/points"), want("page/calls")];
    let error = store.reserve(apart.clone()).await.expect_err("they lie in different slots");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("shop/points and page/calls"), "{error}");
    assert_eq!(store.observe_bucket("shop/points").await.unwrap().unwrap().tokens, 4 * MICRO);
    assert_eq!(store.observe_bucket("page/calls").await.unwrap(), None);
    assert_eq!(kind(store.reserve(vec![want("a"), want("a")]).await), StoreErrorKind::Invalid);
}

/// One node reports the version and settings for all.
#[tokio::test]
async fn a_cluster_tells_its_version_and_settings() {
    let cluster = RedisCluster::start_with(&["--appendfsync", "always"]);
    let store = RedisStore::open(&cluster.url()).await.unwrap();
    let told = store.server_settings().await.unwrap();
    assert!(told.iter().any(|(name, value)| name == "appendfsync" && value == "always"), "{told:?}");
    assert!(told.iter().any(|(name, _)| name.ends_with("_version")), "{told:?}");
}
