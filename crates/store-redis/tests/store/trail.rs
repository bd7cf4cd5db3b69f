//! The archive queue: ended operations are noted with the append that ends them, in order, and stay
//! until they are archived.

use tidegate_core::{Fence, OperationId, Seq, Time};
use tidegate_fixture::redis::RedisCluster;
use tidegate_store::archive_queue::{ArchiveBatch, CostBatch};
use tidegate_store::costs::Cost;
use tidegate_store::log::{Batch, Lsn, Ownership, Retention};
use tidegate_store::{ArchiveQueue, Log, StoreErrorKind};
use tidegate_store_redis::RedisStore;

use crate::sample::{PARTITION, TTL, TestServer, accepts, ended, kind};

const MANY: usize = 1_000;

/// Operations that end in the append that accepts them.
fn ends(seqs: std::ops::Range<u64>, at: Time) -> Batch {
    Batch { results: seqs.clone().map(|seq| ended(seq, at)).collect(), ..accepts(seqs, at) }
}

fn at(micros: u64) -> Time {
    Time::from_micros(micros)
}

async fn trailing(place: &TestServer) -> (RedisStore, Ownership) {
    let (store, owner) = place.enter().await;
    (store.with_archive_queue(), owner)
}

async fn noted(store: &RedisStore, most: usize) -> Option<ArchiveBatch> {
    store.archive_queue().expect("it has a trail").next_ended(PARTITION, most).await.expect("read the trail")
}

fn seqs(range: std::ops::Range<u64>) -> Vec<Seq> {
    range.map(Seq).collect()
}

/// OPS-8: ended operations are noted by the append itself, oldest first, in whole appends; archived
/// ones are removed, and acknowledging twice is harmless.
#[tokio::test]
async fn ops_8_ends_are_noted_in_order_until_they_are_archived() {
    let place = TestServer::new();
    let (store, owner) = trailing(&place).await;
    assert_eq!(noted(&store, MANY).await, None);
    store.append(owner, ends(1..4, at(10))).await.unwrap();
    store.append(owner, accepts(4..6, at(11))).await.unwrap();
    store.append(owner, ends(6..8, at(12))).await.unwrap();
    let all = ArchiveBatch {
        seqs: vec![1, 2, 3, 6, 7].into_iter().map(Seq).collect(),
        upto: Lsn(3),
        oldest: at(10),
        waiting: 5,
    };
    assert_eq!(noted(&store, MANY).await, Some(all));
    let first = ArchiveBatch { seqs: seqs(1..4), upto: Lsn(1), oldest: at(10), waiting: 5 };
    for few in [0, 1, 3] {
        assert_eq!(noted(&store, few).await.as_ref(), Some(&first), "whole appends");
    }
    for _ in 0..2 {
        store.ack_archived(owner, Lsn(1)).await.unwrap();
        let rest = ArchiveBatch { seqs: seqs(6..8), upto: Lsn(3), oldest: at(12), waiting: 2 };
        assert_eq!(noted(&store, MANY).await, Some(rest), "told twice is told once");
    }
    // It runs again, and ends in a batch of its own.
    store.append(owner, Batch { reopened: vec![Seq(2)], ..Batch::default() }).await.unwrap();
    store.append(owner, Batch { results: vec![ended(2, at(20))], ..Batch::default() }).await.unwrap();
    let noted_again = noted(&store, MANY).await.unwrap();
    assert_eq!((noted_again.seqs, noted_again.waiting), (vec![Seq(6), Seq(7), Seq(2)], 3));
    store.ack_archived(owner, noted_again.upto).await.unwrap();
    assert_eq!(noted(&store, MANY).await, None);
    assert!(place.raw_client().await.keys("tg:*trail*").await.is_empty(), "an empty trail takes no room");
}

/// Without an archive nothing is noted.
#[tokio::test]
async fn without_an_archive_nothing_is_noted() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    assert!(store.archive_queue().is_none());
    store.append(owner, ends(1..600, at(10))).await.unwrap();
    assert!(place.raw_client().await.keys("tg:*trail*").await.is_empty());
    let head: Option<String> = place.raw_client().await.ask(&["HGET", "tg:{0}:head", "trail"]).await;
    assert_eq!(head, None);
}

/// OPS-8: an append that is sent again notes its ends once, a rejected one notes none, and a
/// previous owner removes nothing from the queue.
#[tokio::test]
async fn ops_8_only_what_stands_is_noted_and_only_the_owner_removes_it() {
    let place = TestServer::new();
    let (store, old) = trailing(&place).await;
    store.append(old, ends(1..600, at(10))).await.unwrap();
    place.clock.advance(TTL * 2);
    let other = place.open().await.with_archive_queue();
    let owner = other.acquire_partition(PARTITION, "other", TTL).await.unwrap();
    assert_eq!(kind(store.append(old, ends(600..700, at(11))).await), StoreErrorKind::Fenced);
    assert_eq!(kind(store.ack_archived(old, Lsn(1)).await), StoreErrorKind::Fenced);
    let wrong = Batch { follows: Some(Lsn(7)), ..ends(600..700, at(11)) };
    assert_eq!(kind(other.append(owner, wrong).await), StoreErrorKind::Unavailable);
    let found = noted(&other, MANY).await.unwrap();
    assert_eq!((found.seqs, found.waiting), (seqs(1..600), 599));
    let results = other.read(PARTITION, seqs(598..600)).await.unwrap();
    assert!(
        results.iter().flatten().all(|stored| stored.result.is_some()),
        "the last pair is a result, not the note"
    );
}

/// OPS-9: a sweep leaves what is not archived yet, whatever its age, and removes it afterwards.
#[tokio::test]
async fn ops_9_a_sweep_leaves_what_is_not_archived() {
    let place = TestServer::new();
    let (store, owner) = trailing(&place).await;
    for (first, time) in [(1, 10), (11, 20), (21, 30)] {
        store.append(owner, ends(first..first + 10, at(time))).await.unwrap();
    }
    let all = Retention { ended_before: Time::MAX, most: MANY };
    assert_eq!(store.sweep(owner, all).await.unwrap(), 0);
    store.ack_archived(owner, Lsn(1)).await.unwrap();
    assert_eq!(store.sweep(owner, all).await.unwrap(), 10);
    let left = store.read(PARTITION, seqs(1..31)).await.unwrap();
    assert_eq!(left.iter().flatten().count(), 20);
    // A node without an archive sweeps too, and does no harm.
    let plain = place.open().await;
    assert_eq!(plain.sweep(owner, all).await.unwrap(), 0);
    store.ack_archived(owner, Lsn(3)).await.unwrap();
    assert_eq!(store.sweep(owner, all).await.unwrap(), 20);
}

/// On a cluster the queue is in the slot of its partition.
#[tokio::test]
async fn a_cluster_keeps_a_trail_too() {
    let cluster = RedisCluster::start();
    let store = RedisStore::open(&cluster.url()).await.unwrap().with_archive_queue();
    for partition in 0..6 {
        let owner = store.acquire_partition(partition, "test", TTL).await.unwrap();
        store.append(owner, ends(1..4, at(10))).await.unwrap();
        let found = store.next_ended(partition, MANY).await.unwrap().unwrap();
        assert_eq!(found.seqs, seqs(1..4));
        let all = Retention { ended_before: Time::MAX, most: MANY };
        assert_eq!(store.sweep(owner, all).await.unwrap(), 0);
        store.ack_archived(owner, found.upto).await.unwrap();
        assert_eq!(store.next_ended(partition, MANY).await.unwrap(), None);
        assert_eq!(store.sweep(owner, all).await.unwrap(), 3);
    }
}

fn cost(seq: u64, at: Time) -> Cost {
    Cost {
        at,
        operation: OperationId::new(at, PARTITION, Seq(seq)),
        claim: Fence(seq),
        nth: 0,
        limit: "acme/points".into(),
        shape: "Get \"orders\"#1".into(),
        requested: 52,
        actual: Some(seq),
        restore_rate: Some(seq * 10),
    }
}

/// LIM-10: costs are noted by the append itself, with and without ends, in whole appends, and stay
/// until they are archived; acknowledging twice is harmless, and only the owner may. Without an
/// archive nothing is noted.
#[tokio::test]
async fn lim_10_costs_are_noted_in_order_until_they_are_archived() {
    let place = TestServer::new();
    let (store, owner) = trailing(&place).await;
    let spent = |most| {
        let trail = store.archive_queue().expect("it has a trail");
        async move { trail.next_costs(PARTITION, most).await.unwrap() }
    };
    assert_eq!(spent(MANY).await, None);
    let costs = |seqs: std::ops::Range<u64>| seqs.map(|seq| cost(seq, at(10))).collect::<Vec<_>>();
    store.append(owner, Batch { costs: costs(1..4), ..ends(1..4, at(10)) }).await.unwrap();
    store.append(owner, ends(4..6, at(11))).await.unwrap();
    store
        .append(owner, Batch { costs: costs(4..6), reopened: vec![Seq(2)], ..Batch::default() })
        .await
        .unwrap();
    assert_eq!(spent(MANY).await, Some(CostBatch { costs: costs(1..6), upto: Lsn(3) }));
    assert_eq!(spent(1).await, Some(CostBatch { costs: costs(1..4), upto: Lsn(1) }), "whole appends");
    assert_eq!(noted(&store, MANY).await.unwrap().seqs, seqs(1..6), "ends are noted as before");
    let unfounded = Batch { costs: costs(6..9), follows: Some(Lsn(9)), ..Batch::default() };
    assert_eq!(kind(store.append(owner, unfounded).await), StoreErrorKind::Unavailable);
    for _ in 0..2 {
        store.ack_costs(owner, Lsn(1)).await.unwrap();
        assert_eq!(spent(MANY).await, Some(CostBatch { costs: costs(4..6), upto: Lsn(3) }));
    }
    let next = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    assert_eq!(kind(store.ack_costs(owner, Lsn(3)).await), StoreErrorKind::Fenced);
    store.ack_costs(next, Lsn(3)).await.unwrap();
    assert_eq!(spent(MANY).await, None);
    let plain = place.open().await;
    let owner = plain.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    plain.append(owner, Batch { costs: costs(1..4), ..Batch::default() }).await.unwrap();
    assert!(place.raw_client().await.keys("tg:*spent*").await.is_empty());
}
