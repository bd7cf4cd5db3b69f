//! Owners that die, are paused or take long: when a key changes hands, and whose response counts.

use std::sync::Arc;

use tidegate_contract::{FaultPlan, InjectedFault, StoreMethod};
use tidegate_idempotency::{Policy, UnknownOutcomePolicy};

use crate::world::{Handler, World, secs};

/// The next thousand renewals are lost: an owner that is dead or paused.
fn silent() -> FaultPlan {
    (1..=1_000)
        .fold(FaultPlan::none(), |plan, nth| plan.at(StoreMethod::RenewRecord, nth, InjectedFault::Fail))
}

/// IDM-7: a handler that takes longer than the lease keeps its key by renewing it.
#[tokio::test(start_paused = true)]
async fn a_long_handler_keeps_its_key() {
    let world = World::new(Handler::slow(secs(300)), Policy::default());
    let other = world.clone();
    let first = tokio::spawn(async move { other.post("k", "a").await });
    for _ in 0..29 {
        tokio::time::sleep(secs(10)).await;
        assert_eq!(world.post("k", "a").await.code(), "IDEMPOTENCY_KEY_PROCESSING");
    }
    assert_eq!(first.await.unwrap().text(), "made 1");
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-7: a handler that never ends does not keep its key for ever.
#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_loses_its_key_in_the_end() {
    let policy = Policy::default().with_run_max(secs(600));
    let handler = Handler::new(|nth| async move {
        if nth == 1 {
            std::future::pending::<()>().await;
        }
        Ok(crate::world::text(http::StatusCode::CREATED, "made"))
    });
    let world = World::new(handler, policy);
    let hanging = world.clone();
    tokio::spawn(async move { hanging.post("k", "a").await });
    tokio::time::sleep(secs(600)).await;
    assert_eq!(world.post("k", "a").await.code(), "IDEMPOTENCY_KEY_PROCESSING");
    tokio::time::sleep(secs(40)).await;
    assert_eq!(world.post("k", "a").await.text(), "made");
}

/// IDM-7: when the lease of a dead owner has expired, and no earlier, the next request takes over;
/// the dead one's late response does not overwrite, and its client gets the response that counts.
#[tokio::test(start_paused = true)]
async fn an_owner_that_sleeps_past_its_lease_does_not_overwrite() {
    let store = crate::world::store();
    let sleeper = World::on(Arc::clone(&store), Handler::slow(secs(100)), Policy::default());
    let next = World::on(Arc::clone(&store), Handler::slow(secs(1)), Policy::default());
    store.set_plan(silent());
    let sleeping = sleeper.clone();
    let late = tokio::spawn(async move { sleeping.post("k", "a").await });
    tokio::time::sleep(secs(29)).await;
    assert_eq!(next.post("k", "a").await.code(), "IDEMPOTENCY_KEY_PROCESSING");
    tokio::time::sleep(secs(2)).await;
    assert_eq!(next.post("k", "a").await.text(), "made 1");
    let late = late.await.unwrap();
    assert!(late.is_replay(), "the sleeper's client gets the answer that is kept");
    assert_eq!((sleeper.handler.runs(), next.handler.runs()), (1, 1));
    assert!(next.post("k", "a").await.is_replay());
}

/// IDM-7: nor does it free a key that now belongs to another, when its own attempt failed.
#[tokio::test(start_paused = true)]
async fn an_owner_that_sleeps_past_its_lease_does_not_free_the_key() {
    let store = crate::world::store();
    let failing = Handler::new(|_| async {
        tokio::time::sleep(secs(100)).await;
        Ok(crate::world::text(http::StatusCode::INTERNAL_SERVER_ERROR, "failed"))
    });
    let sleeper = World::on(Arc::clone(&store), failing, Policy::default());
    let next = World::on(Arc::clone(&store), Handler::creating(), Policy::default());
    store.set_plan(silent());
    let sleeping = sleeper.clone();
    let late = tokio::spawn(async move { sleeping.post("k", "a").await });
    tokio::time::sleep(secs(31)).await;
    assert_eq!(next.post("k", "a").await.text(), "made 1");
    assert_eq!(late.await.unwrap().status, 500);
    assert!(next.post("k", "a").await.is_replay());
}

/// IDM-18: where unknown outcomes are held, a dead owner's key is not taken over.
#[tokio::test(start_paused = true)]
async fn a_dead_owners_key_is_held_where_that_was_chosen() {
    let store = crate::world::store();
    let hold = Policy::default().with_on_unknown(UnknownOutcomePolicy::Hold);
    let dead = World::on(Arc::clone(&store), Handler::slow(secs(100)), hold.clone());
    let next = World::on(Arc::clone(&store), Handler::creating(), hold);
    store.set_plan(silent());
    let dying = dead.clone();
    let late = tokio::spawn(async move { dying.post("k", "a").await });
    tokio::time::sleep(secs(31)).await;
    assert_eq!(next.post("k", "a").await.code(), "IDEMPOTENCY_OUTCOME_UNKNOWN");
    assert_eq!(late.await.unwrap().text(), "made 1", "it was only slow");
    assert!(next.post("k", "a").await.is_replay());
    assert_eq!(next.handler.runs(), 0);
}

/// IDM-8: two processes on one store, many concurrent requests with one key: one runs.
#[tokio::test(start_paused = true)]
async fn one_of_many_at_once_runs_on_whichever_process() {
    let store = crate::world::store();
    let handler = Handler::slow(crate::world::ms(50));
    let worlds: Vec<_> =
        (0..2).map(|_| World::on(Arc::clone(&store), handler.clone(), Policy::default())).collect();
    let requests = (0..100).map(|nth: usize| {
        let world = worlds[nth % 2].clone();
        tokio::spawn(async move { world.post("k", "a").await.status })
    });
    let mut statuses = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        statuses.push(request.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 99);
    assert_eq!(handler.runs(), 1);
}
