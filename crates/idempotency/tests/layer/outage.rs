//! A store that is unavailable, hangs, or loses its replies.

use tidegate_contract::{FaultPlan, InjectedFault, StoreMethod};
use tidegate_idempotency::{Policy, StoreUnavailablePolicy, UnknownOutcomePolicy};

use crate::world::{Handler, World, secs};

fn always(verb: StoreMethod, injury: InjectedFault) -> FaultPlan {
    (1..=1_000).fold(FaultPlan::none(), |plan, nth| plan.at(verb, nth, injury))
}

/// IDM-21: when the store is unavailable before the claim nothing is executed, and a retry is safe.
#[tokio::test(start_paused = true)]
async fn without_a_store_nothing_is_done() {
    let world = World::new(Handler::creating(), Policy::default());
    world.store.set_down(true);
    let refused = world.post("k", "a").await;
    assert_eq!((refused.status, refused.code()), (503, "IDEMPOTENCY_UNAVAILABLE"));
    assert_eq!(refused.headers["retry-after"], "1");
    world.store.set_down(false);
    assert_eq!(world.post("k", "a").await.text(), "made 1");
}

/// IDM-21: if configured, a request passes without protection, and the response says so.
#[tokio::test(start_paused = true)]
async fn by_choice_a_request_passes_unprotected() {
    let world = World::new(
        Handler::creating(),
        Policy::default().with_store_unavailable(StoreUnavailablePolicy::PassOn),
    );
    world.store.set_down(true);
    for nth in 1..=2 {
        let answer = world.post("k", "a").await;
        assert_eq!(answer.text(), format!("made {nth}"));
        assert_eq!(answer.headers["idempotency-unprotected"], "true");
    }
}

/// IDM-21: a store that hangs counts as unavailable.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_away() {
    let world = World::new(Handler::creating(), Policy::default());
    world.store.set_plan(always(StoreMethod::ClaimRecord, InjectedFault::Delay(secs(1_000))));
    let start = tokio::time::Instant::now();
    assert_eq!(world.post("k", "a").await.code(), "IDEMPOTENCY_UNAVAILABLE");
    assert!(start.elapsed() < secs(6), "{:?}", start.elapsed());
    assert_eq!(world.handler.runs(), 0);
}

/// A claim whose reply is lost is the same claim when it is made again.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_the_claim_costs_nothing() {
    let world = World::new(Handler::creating(), Policy::default());
    world.store.set_plan(FaultPlan::none().at(StoreMethod::ClaimRecord, 1, InjectedFault::LoseReply));
    assert_eq!(world.post("k", "a").await.text(), "made 1");
    assert!(world.post("k", "a").await.is_replay());
}

/// IDM-21, IDM-18: a claim whose reply was lost does not block its key, not even where unknown
/// outcomes are held.
#[tokio::test(start_paused = true)]
async fn a_claim_that_was_made_unheard_is_taken_back() {
    let world =
        World::new(Handler::creating(), Policy::default().with_on_unknown(UnknownOutcomePolicy::Hold));
    let deaf = FaultPlan::none().at(StoreMethod::ClaimRecord, 1, InjectedFault::LoseReply).at(
        StoreMethod::ClaimRecord,
        2,
        InjectedFault::LoseReply,
    );
    world.store.set_plan(deaf);
    assert_eq!(world.post("k", "a").await.status, 503);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(world.post("k", "a").await.text(), "made 1");
}

/// IDM-21: when the store becomes unavailable after the handler ran, the client gets the real
/// response; it is saved as soon as the store is back.
#[tokio::test(start_paused = true)]
async fn an_answer_that_could_not_be_kept_is_kept_later() {
    let world = World::new(Handler::creating(), Policy::default());
    world.store.set_plan(always(StoreMethod::CompleteRecord, InjectedFault::Fail));
    let first = world.post("k", "a").await;
    assert_eq!((first.status, first.text()), (201, "made 1"));
    let (again, other) = (world.post("k", "a").await, world.post("k", "b").await);
    assert_eq!((again.text(), again.is_replay()), ("made 1", true), "from this process's memory");
    assert_eq!(other.code(), "IDEMPOTENCY_KEY_CONFLICT");
    world.store.set_plan(FaultPlan::none());
    tokio::time::sleep(secs(1)).await;
    let elsewhere = World::on(std::sync::Arc::clone(&world.store), world.handler.clone(), Policy::default());
    assert!(elsewhere.post("k", "a").await.is_replay(), "by now it is kept");
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-21, IDM-7: a store that is unavailable for longer than the lease, and loses nothing, lets no
/// retry run twice in a process that is still alive: neither while the handler runs nor after it
/// responded.
#[tokio::test(start_paused = true)]
async fn a_store_away_for_longer_than_the_lease_doubles_nothing_here() {
    let world = World::new(Handler::slow(secs(200)), Policy::default());
    let working = world.clone();
    let first = tokio::spawn(async move { working.post("k", "a").await });
    tokio::time::sleep(secs(1)).await;
    world.store.set_down(true);
    tokio::time::sleep(secs(100)).await;
    world.store.set_down(false);
    assert_eq!(world.post("k", "a").await.code(), "IDEMPOTENCY_KEY_PROCESSING", "its lease ran out long ago");
    tokio::time::sleep(secs(50)).await;
    world.store.set_down(true);
    assert_eq!(first.await.unwrap().text(), "made 1");
    tokio::time::sleep(secs(60)).await;
    world.store.set_down(false);
    let again = world.post("k", "a").await;
    assert_eq!((again.text(), again.is_replay()), ("made 1", true));
    tokio::time::sleep(secs(5)).await;
    assert!(world.post("k", "a").await.is_replay());
    assert_eq!(world.handler.runs(), 1);
}

/// A response that was saved and whose reply was lost is saved.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_the_answer_costs_nothing() {
    let world = World::new(Handler::creating(), Policy::default());
    world.store.set_plan(FaultPlan::none().at(StoreMethod::CompleteRecord, 1, InjectedFault::LoseReply));
    assert_eq!(world.post("k", "a").await.text(), "made 1");
    assert!(world.post("k", "a").await.is_replay());
}
