//! The memory store resolves on the first poll, without background tasks, so that time may stand
//! still.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_contract::ManualClock;
use tidegate_core::Seq;
use tidegate_store::log::{Lsn, Retention, StoredQuery};
use tidegate_store::nodes::NodeRecord;
use tidegate_store::{Clock, Log, Nodes, SharedState, StoreFuture, Upkeep, codec};
use tidegate_store_embedded::MemoryStore;

use crate::sample::{PARTITION, TTL, accepts, ends, facts, replayed};

/// The result of a single poll; there is no runtime to poll again.
#[track_caller]
fn now<T>(answer: StoreFuture<'_, T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.expect("it should have been done"),
        Poll::Pending => panic!("it would have to be asked again"),
    }
}

#[test]
fn every_verb_is_answered_at_the_first_question() {
    let clock = ManualClock::today();
    let store = MemoryStore::new(Arc::clone(&clock) as _);
    let owner = now(store.acquire_partition(PARTITION, "test", TTL));
    assert_eq!(now(store.append(owner, accepts(1..9, clock.now()))), Lsn(1));
    assert_eq!(now(store.append(owner, ends(1..5, clock.now()))), Lsn(2));
    now(store.snapshot(owner, Lsn(1), vec![codec::encode(&facts(1..9))]));
    let (seqs, last) = now(Box::pin(replayed(&store)));
    assert_eq!((seqs, last), ((1..9).collect(), Lsn(2)));
    let later = clock.now().after(TTL);
    assert_eq!(now(store.sweep(owner, Retention { ended_before: later, most: 3 })), 3);
    assert_eq!(now(store.list(PARTITION, StoredQuery { limit: 9, ..StoredQuery::default() })).items.len(), 5);
    assert!(now(store.read(PARTITION, vec![Seq(8)]))[0].is_some());
    assert_eq!(now(store.stats()).operations, 5);
    now(store.acquire_lease("bulk", TTL));
    now(store.reserve(Vec::new()));
    now(store.register("test", &NodeRecord::default(), TTL));
    assert_eq!(now(store.list_nodes()).len(), 1);
    now(store.health());
}
