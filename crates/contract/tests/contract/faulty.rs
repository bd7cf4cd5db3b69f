//! A store with fault injection fails as planned, and never more than that.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::faulty::{
    FaultCounts, FaultPlan, FaultRates, FaultyStore, InjectedFault, StoreMethod,
};
use tidegate_contract::{Backend, TestRng, samples::BatchWriter};
use tidegate_core::Time;
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::{Log, SharedState, Store, StoreErrorKind};

use crate::memory::MemoryBackend;

const TTL: Duration = Duration::from_secs(60);

async fn owned(plan: FaultPlan) -> (FaultyStore, Arc<dyn Store>, Ownership) {
    let inner = MemoryBackend::new().open().await.unwrap();
    let owner = inner.acquire_partition(0, "test", TTL).await.unwrap();
    (FaultyStore::new(Arc::clone(&inner), plan), inner, owner)
}

async fn last(log: &dyn Store) -> Lsn {
    log.load(0, &mut |_| ()).await.unwrap()
}

/// OPS-8: the two failures that must not be confused: not written, and written with the reply lost.
#[tokio::test]
async fn a_script_is_followed_call_by_call() {
    let plan = FaultPlan::none().at(StoreMethod::Append, 2, InjectedFault::Fail).at(
        StoreMethod::Append,
        3,
        InjectedFault::LoseReply,
    );
    let (faulty, inner, owner) = owned(plan).await;
    let mut author = BatchWriter::new(TestRng::new(1));
    let mut append =
        async || faulty.append(owner, author.batch(Time::ZERO)).await.map_err(|error| error.kind());
    assert_eq!(append().await, Ok(Lsn(1)));
    assert_eq!(append().await, Err(StoreErrorKind::Unavailable));
    assert_eq!(last(&*inner).await, Lsn(1), "a failed append wrote nothing");
    assert_eq!(append().await, Err(StoreErrorKind::Unsure));
    assert_eq!(last(&*inner).await, Lsn(2), "an append that lost its answer was written");
    assert_eq!(append().await, Ok(Lsn(3)));
    assert_eq!(faulty.fault_counts(), FaultCounts { calls: 4, failed: 1, delayed: 0, lost: 1 });
}

/// A refusal that loses its reply stays a refusal, and a read that loses its reply leaves nothing
/// unsure.
#[tokio::test]
async fn only_what_was_written_is_unsure() {
    let plan = FaultPlan::none().at(StoreMethod::Append, 1, InjectedFault::LoseReply).at(
        StoreMethod::ObserveBucket,
        1,
        InjectedFault::LoseReply,
    );
    let (faulty, inner, old) = owned(plan).await;
    inner.release(old).await.unwrap();
    inner.acquire_partition(0, "newer", TTL).await.unwrap();
    let batch = BatchWriter::new(TestRng::new(1)).batch(Time::ZERO);
    assert_eq!(faulty.append(old, batch).await.unwrap_err().kind(), StoreErrorKind::Fenced);
    assert_eq!(faulty.observe_bucket("any").await.unwrap_err().kind(), StoreErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_as_long_as_it_was_told() {
    let (faulty, _, owner) =
        owned(FaultPlan::none().at(StoreMethod::Renew, 1, InjectedFault::Delay(TTL))).await;
    let start = tokio::time::Instant::now();
    faulty.renew(owner, TTL).await.unwrap();
    assert_eq!(start.elapsed(), TTL);
    assert_eq!(faulty.fault_counts().delayed, 1);
}

/// LIM-30, IDM-21: an unavailable store does nothing until it is back.
#[tokio::test]
async fn out_of_reach_means_nothing_is_done() {
    let (faulty, inner, owner) = owned(FaultPlan::none()).await;
    faulty.set_down(true);
    let batch = BatchWriter::new(TestRng::new(1)).batch(Time::ZERO);
    assert_eq!(faulty.append(owner, batch.clone()).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(faulty.acquire_lease("any", TTL).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(last(&*inner).await, Lsn(0));
    faulty.set_down(false);
    assert_eq!(faulty.append(owner, batch).await.unwrap(), Lsn(1));
}

/// The same seed gives the same faults, about as many as the rates say, and only in the named
/// methods.
#[tokio::test]
async fn chance_follows_its_seed_and_its_odds() {
    async fn run(seed: u64) -> (Vec<Option<StoreErrorKind>>, FaultCounts, Lsn) {
        let odds = FaultRates { fail: 200, lose_reply: 100, ..FaultRates::default() };
        let plan = FaultPlan::seeded(seed, odds).only(&[StoreMethod::Append]);
        let (faulty, inner, owner) = owned(plan).await;
        let mut kinds = Vec::new();
        for _ in 0..1_000 {
            let answer = faulty.append(owner, tidegate_store::log::Batch::default()).await;
            kinds.push(answer.err().map(|error| error.kind()));
            faulty.renew(owner, TTL).await.unwrap();
        }
        (kinds, faulty.fault_counts(), last(&*inner).await)
    }
    let (kinds, injected, written) = run(5).await;
    assert_eq!(kinds, run(5).await.0);
    assert_ne!(kinds, run(6).await.0);
    assert!((150..250).contains(&injected.failed) && (60..140).contains(&injected.lost), "{injected:?}");
    assert_eq!(written, Lsn(1_000 - injected.failed), "all but those that failed were written");
}
