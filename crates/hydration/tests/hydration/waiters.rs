//! Callers that leave, wait without being polled, or meet an answer half-way.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use tidegate_hydration::{
    CopyFuture, EntityChange, EntityCopy, EntityKey, EntityStamp, FlightRules, GetOptions, LocalCopies,
    MemoryCopies,
};
use tokio::time::{Instant, advance, sleep};

use super::world::*;

/// HYD-25: the first caller leaves: the others have their answer, and nothing more is asked.
#[tokio::test(start_paused = true)]
async fn hyd_25_the_leader_leaves() {
    let mut world = World::new().await;
    let leader = world.spawn_get("c-7", GetOptions::full()).await;
    let other = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    leader.abort();
    settle().await;
    assert_eq!(world.hydrator.flights(None, 1)[0].waiters.len(), 1, "removed whatever happens");
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!((name(&other.await.unwrap()), world.published()), ("Ada".to_owned(), 1));
}

/// HYD-25: all callers leave before the question left: it leaves all the same, its answer is
/// stored, and no flight stays.
#[tokio::test(start_paused = true)]
async fn hyd_25_all_callers_leave() {
    let mut world = World::new().await;
    {
        let key = key("c-7");
        let options = GetOptions::full();
        let mut read = Box::pin(world.hydrator.get(&key, &options));
        assert!(read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(world.hydrator.flights(None, 1), []);
    assert_eq!((name(&world.get("c-7").await), world.published()), ("Ada".to_owned(), 1));
}

/// HYD-25: a caller that is held and never polled keeps no one from their answer.
#[tokio::test(start_paused = true)]
async fn hyd_25_a_caller_that_is_not_polled_blocks_no_one() {
    let mut world = World::new().await;
    let (id, options, hydrator) = (key("c-7"), GetOptions::full(), world.hydrator.clone());
    let mut held = Box::pin(hydrator.get(&id, &options));
    assert!(held.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let other = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&other.await.unwrap()), "Ada");
    assert_eq!(name(&held.await), "Ada");
}

/// HYD-25: the wait is the caller's own, and it is total.
#[tokio::test(start_paused = true)]
async fn hyd_25_each_caller_has_its_own_total_wait() {
    let world = World::new().await;
    let before = Instant::now();
    let long = world.spawn_get("c-7", GetOptions::full().wait(Duration::from_millis(650))).await;
    assert_eq!(
        name(&world.hydrator.get(&key("c-7"), &GetOptions::full().wait(Duration::from_millis(50))).await),
        TIMED_OUT
    );
    assert_eq!(before.elapsed().as_millis(), 50);
    assert_eq!(name(&long.await.unwrap()), TIMED_OUT);
    assert_eq!((before.elapsed().as_millis(), world.published()), (650, 2));
}

/// HYD-9: without retries there is one question.
#[tokio::test(start_paused = true)]
async fn hyd_9_without_retries_there_is_one_question() {
    let world = World::with(FlightRules { max_retries: 0, ..FlightRules::default() }).await;
    assert_eq!(name(&world.get("c-7").await), TIMED_OUT);
    advance(Duration::from_secs(4)).await;
    assert_eq!(world.published(), 1);
}

/// Copies that answer reads with what was there a moment ago, or panic.
#[derive(Clone, Default)]
struct OddCopies {
    inner: MemoryCopies,
    is_blind: Arc<AtomicBool>,
    is_panicking: Arc<AtomicBool>,
}

impl LocalCopies for OddCopies {
    fn load<'a>(&'a self, key: &'a EntityKey) -> CopyFuture<'a, Option<Arc<EntityCopy>>> {
        if self.is_blind.swap(false, Ordering::SeqCst) {
            return Box::pin(std::future::ready(Ok(None)));
        }
        self.inner.load(key)
    }

    fn update<'a>(
        &'a self,
        key: &'a EntityKey,
        change: &'a EntityChange,
    ) -> CopyFuture<'a, Option<Arc<EntityCopy>>> {
        assert!(!self.is_panicking.load(Ordering::SeqCst), "the test wants it");
        self.inner.update(key, change)
    }
}

/// HYD-4, HYD-6: an answer that was stored between the first look and the registration is seen by
/// the second look: no question, no wait.
#[tokio::test(start_paused = true)]
async fn hyd_4_an_answer_between_look_and_registration_is_found() {
    let copies = OddCopies::default();
    let world = World::without_source(FlightRules::default(), Arc::new(copies.clone())).await;
    world.announce("c-7", "Ada", version(1)).await;
    copies.is_blind.store(true, Ordering::SeqCst);
    let before = Instant::now();
    assert_eq!(name(&world.get("c-7").await), "Ada");
    assert_eq!((world.published(), before.elapsed()), (0, Duration::ZERO));
    assert_eq!(world.hydrator.flights(None, 1), []);
}

/// HYD-6: a local copy that panics takes no one with it: who waits has the answer, and the next
/// event is handled.
#[tokio::test(start_paused = true)]
async fn hyd_6_a_panic_in_the_local_copy_stops_nothing() {
    let copies = OddCopies::default();
    copies.is_panicking.store(true, Ordering::SeqCst);
    let world = World::without_source(FlightRules::default(), Arc::new(copies.clone())).await;
    world.bus.is_losing.store(true, Ordering::SeqCst);
    let callers =
        [world.spawn_get("c-7", GetOptions::full()).await, world.spawn_get("c-7", GetOptions::full()).await];
    world.announce("c-7", "Ada", version(1)).await;
    for caller in callers {
        assert_eq!(name(&caller.await.unwrap()), "Ada");
    }
    copies.is_panicking.store(false, Ordering::SeqCst);
    world.announce("c-7", "Ada", version(1)).await;
    assert_eq!(name(&world.get("c-7").await), "Ada");
}

/// HYD-6: an answer that arrives before `publish` has returned reaches its caller.
#[tokio::test(start_paused = true)]
async fn hyd_6_an_answer_before_publish_returns_is_delivered() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    // On this bus a message is in the subscriber's queue before `publish` returns.
    let question = world.question_within(Duration::ZERO).await.unwrap();
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
}

/// An invalidated copy is asked for at its next use, and stays for whoever makes do with it.
#[tokio::test(start_paused = true)]
async fn an_invalidated_copy_is_asked_for_again() {
    let mut world = World::new().await;
    world.announce("c-7", "Ada", version(1)).await;
    world.hydrator.invalidate(&key("c-7")).await.unwrap();
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    world.answer(&question, "Ada L.", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada L.");
    world.hydrator.invalidate(&key("c-7")).await.unwrap();
    let stale = world.hydrator.get(&key("c-7"), &GetOptions::full().degrade()).await;
    assert_eq!(name(&stale), "Ada L. (stale)");
    sleep(Duration::from_secs(6)).await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    let question = loop {
        let question = world.question().await;
        if question.key == key("c-8") {
            break question;
        }
    };
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    world.hydrator.invalidate(&key("c-8")).await.unwrap();
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    world.question().await;
    caller.abort();
}
