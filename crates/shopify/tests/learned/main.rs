//! The engine and the dialect together, on a manual clock: the budgets become what a shop reports,
//! and stay so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod shop;
use std::time::Duration;

use tidegate::ErrorKind;
use tidegate_core::State;
use tidegate_core::fact::{LimitShape, LimitSource};
use tidegate_core::operation::MICRO;
use tokio::time::Instant;

use shop::{CallBehavior, FakeShop, graphql, limit, memory, open, rest};

const LONG: Duration = Duration::from_secs(3_600);
const TEN: &str = "{ products(first: 10) { nodes { id } } }";
const FIFTY: &str = "{ products(first: 50) { nodes { id } } }";

/// Costs as in the text: 12 or 52 points, all of them used.
fn by_text(text: &str) -> CallBehavior {
    let cost = if text.contains("first: 50") { 52.0 } else { 12.0 };
    CallBehavior { requested: cost, actual: cost, takes: Duration::from_millis(20) }
}

/// Returns the capacity and the rate of a budget, in whole tokens.
fn figures(shape: LimitShape) -> (u64, u64) {
    let LimitShape::Drip { capacity, refill_per_s, .. } = shape else { return (0, 0) };
    (capacity / MICRO, refill_per_s / MICRO)
}

/// LIM-8 / LIM-4: the initial figures hold only until the first response; then the budget is what
/// the shop reported, and no other budget changes.
#[tokio::test(start_paused = true)]
async fn lim_8_after_the_first_answer_the_budget_is_what_the_shop_said() {
    let (store, shop) = (memory(), FakeShop::new(2_000.0, 100.0, by_text));
    let engine = open(&store, &shop).await;
    let before = limit(&engine, "acme/points").await;
    assert_eq!((figures(before.shape), before.source), ((1_000, 50), LimitSource::Config));
    let id = engine.submit(graphql("g", TEN)).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    let after = limit(&engine, "acme/points").await;
    assert_eq!((figures(after.shape), after.source), ((2_000, 100), LimitSource::Learned));
    let requests = limit(&engine, "acme/requests").await;
    assert_eq!((figures(requests.shape), requests.source), ((40, 2), LimitSource::Config));
}

/// LIM-8 / LIM-13: with more work than a budget holds, the shop refuses nothing and its rate is
/// used.
#[tokio::test(start_paused = true)]
async fn lim_8_the_learned_rate_is_used_and_never_overstepped() {
    let (store, shop) = (memory(), FakeShop::new(2_000.0, 100.0, by_text));
    let engine = open(&store, &shop).await;
    let start = Instant::now();
    let mut ids = Vec::new();
    for n in 0..120 {
        ids.push(engine.submit(graphql(&format!("g{}", n % 30), FIFTY)).await.unwrap().id);
    }
    for id in ids {
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    assert_eq!(*shop.turned_away.lock().unwrap(), 0);
    // 1,000 points are available at first, the rest comes at 100 per second: not much later, and
    // not at 50 per second.
    let least = (120.0 * 52.0 - 2_000.0) / 100.0;
    let took = start.elapsed().as_secs_f64();
    assert!((least..=(120.0 * 52.0 - 900.0) / 100.0 + 1.0).contains(&took), "{took} s");
}

/// LIM-8 / LIM-23: the requested cost is reserved, and the unused part is returned with the
/// response.
#[tokio::test(start_paused = true)]
async fn lim_23_what_a_call_did_not_use_is_given_back() {
    let does = |_: &str| CallBehavior { requested: 101.0, actual: 46.0, takes: Duration::from_secs(1) };
    // Next to nothing is restored here, so that levels can be told apart.
    let (store, shop) = (memory(), FakeShop::new(1_000.0, 0.001, does));
    let engine = open(&store, &shop).await;
    let first = engine.submit(graphql("g", TEN)).await.unwrap().id;
    engine.wait(first, LONG).await.unwrap();
    let settled = limit(&engine, "acme/points").await.level / MICRO;
    assert_eq!(settled, 1_000 - 46);
    let second = engine.submit(graphql("g", TEN)).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = limit(&engine, "acme/points").await.level / MICRO;
    assert_eq!(held, 1_000 - 46 - 101, "the second is charged the reported cost of the first");
    engine.wait(second, LONG).await.unwrap();
    assert_eq!(limit(&engine, "acme/points").await.level / MICRO, 1_000 - 2 * 46);
}

/// LIM-23: a late response with a higher balance does not raise the balance.
#[tokio::test(start_paused = true)]
async fn lim_23_answers_out_of_order_never_raise_the_balance() {
    let does = |text: &str| {
        let slow = text.contains("first: 50");
        CallBehavior {
            requested: 52.0,
            actual: 52.0,
            takes: Duration::from_millis(if slow { 900 } else { 100 }),
        }
    };
    let (store, shop) = (memory(), FakeShop::new(1_000.0, 0.001, does));
    let engine = open(&store, &shop).await;
    let slow = engine.submit(graphql("slow", FIFTY)).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Another client of the same app takes most of it, and only the quick response reports it.
    shop.drain_to(300.0);
    let quick = engine.submit(graphql("quick", TEN)).await.unwrap().id;
    engine.wait(quick, LONG).await.unwrap();
    let low = limit(&engine, "acme/points").await.level / MICRO;
    assert_eq!(low, 300 - 52);
    engine.wait(slow, LONG).await.unwrap();
    assert!(limit(&engine, "acme/points").await.level / MICRO <= low, "its response reported 948");
}

/// LIM-14, LIM-23: time refills what we believe a shop has, as it refills the shop's own budget: a
/// burst after an idle minute takes as long as the whole budget allows, each time.
#[tokio::test(start_paused = true)]
async fn lim_14_lim_23_an_idle_time_refills_the_budget() {
    let does = |_: &str| CallBehavior { requested: 52.0, actual: 31.0, takes: Duration::from_millis(300) };
    let (store, shop) = (memory(), FakeShop::new(1_000.0, 50.0, does));
    let engine = open(&store, &shop).await;
    for round in 0..3 {
        let start = Instant::now();
        let mut ids = Vec::new();
        for n in 0..64 {
            ids.push(engine.submit(graphql(&format!("g{n}"), FIFTY)).await.unwrap().id);
        }
        for id in ids {
            assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
        }
        let (took, needed) = (start.elapsed().as_secs_f64(), (64.0 * 31.0 - 1_000.0) / 50.0);
        assert!(took < needed * 1.15, "round {round}: {took} s where {needed} s are needed");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let level = limit(&engine, "acme/points").await.level / MICRO;
        assert!(level >= 950, "round {round}: {level} of 1,000 are believed");
    }
    assert_eq!(*shop.turned_away.lock().unwrap(), 0);
}

/// LIM-12 / LIM-1 / LIM-4: after THROTTLED every GraphQL call of the shop waits for the computed
/// time, with no attempt spent; its REST calls continue.
#[tokio::test(start_paused = true)]
async fn lim_12_after_throttled_all_calls_of_the_budget_wait() {
    let (store, shop) = (memory(), FakeShop::new(1_000.0, 100.0, by_text));
    shop.drain_to(2.0);
    let engine = open(&store, &shop).await;
    let start = Instant::now();
    let told = engine.submit(graphql("a", FIFTY)).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*shop.turned_away.lock().unwrap(), 1);
    let (other, free) = (graphql("b", TEN), rest("c"));
    let (other, free) = (engine.submit(other).await.unwrap().id, engine.submit(free).await.unwrap().id);
    engine.wait(free, LONG).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(400), "REST has a budget of its own");
    let view = engine.wait(told, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Succeeded, 1));
    engine.wait(other, LONG).await.unwrap();
    assert_eq!(*shop.turned_away.lock().unwrap(), 1, "no other call was refused");
    let arrivals = shop.arrivals.lock().unwrap().clone();
    let graphql: Vec<_> =
        arrivals.iter().filter(|(text, _)| text.contains("query")).map(|(_, at)| *at - start).collect();
    // 50 points are missing: half a second and a little jitter, and no second wait after it.
    assert!(graphql[1..].iter().all(|at| *at >= Duration::from_millis(500)), "{graphql:?}");
    assert!(graphql[1] < Duration::from_millis(700), "{graphql:?}");
}

/// LIM-24: what was learned survives a restart, and the budget is not full again.
#[tokio::test(start_paused = true)]
async fn lim_24_what_was_learned_survives_a_restart() {
    let (store, shop) = (memory(), FakeShop::new(2_000.0, 1.0, by_text));
    let engine = open(&store, &shop).await;
    for n in 0..10 {
        let id = engine.submit(graphql(&format!("g{n}"), FIFTY)).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
    }
    let before = limit(&engine, "acme/points").await;
    engine.drain().await;
    drop(engine);
    let engine = open(&store, &shop.restarted(by_text)).await;
    let after = limit(&engine, "acme/points").await;
    assert_eq!((figures(after.shape), after.source), ((2_000, 1), LimitSource::Learned));
    assert!(after.level <= before.level + 5 * MICRO, "{} after {}", after.level, before.level);
}

/// LIM-9: however large an estimate is, the call is made: Shopify decides what is too much.
#[tokio::test(start_paused = true)]
async fn lim_9_an_estimate_is_not_a_refusal() {
    let does = |_: &str| CallBehavior { requested: 900.0, actual: 30.0, takes: Duration::from_millis(10) };
    let (store, shop) = (memory(), FakeShop::new(2_000.0, 100.0, does));
    let engine = open(&store, &shop).await;
    let huge = "{ a(first: 250) { nodes { b(first: 250) { nodes { id } } } } }";
    let id = engine.submit(graphql("g", huge)).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
}

/// LIM-9: nor is it refused after a restart, after an operator lowered the limit, or when it was
/// accepted while the budget was assumed to be larger.
#[tokio::test(start_paused = true)]
async fn lim_9_an_estimate_is_no_refusal_when_the_budget_is_smaller() {
    let does = |_: &str| CallBehavior { requested: 60.0, actual: 30.0, takes: Duration::from_millis(10) };
    let (store, shop) = (memory(), FakeShop::new(300.0, 50.0, does));
    let engine = open(&store, &shop).await;
    let large = |n: u32| {
        let query = format!("{{ a{n}(first: 40) {{ nodes {{ b(first: 21) {{ nodes {{ id }} }} }} }} }}");
        graphql(&format!("g{n}"), &query)
    };
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(engine.submit(large(n)).await.unwrap().id);
    }
    for id in ids {
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    assert_eq!(figures(limit(&engine, "acme/points").await.shape), (300, 50));
    engine.drain().await;
    drop(engine);
    let engine = open(&store, &shop.restarted(does)).await;
    let id = engine.submit(large(4)).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    let lowered = LimitShape::Drip { capacity: 200 * MICRO, refill_per_s: 50 * MICRO, margin: 0 };
    engine.set_limit("acme/points", lowered).await.unwrap();
    let id = engine.submit(large(5)).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    let stated = large(6).with_cost("points", 201);
    assert_eq!(
        engine.submit(stated).await.unwrap_err().kind,
        ErrorKind::TooCostly,
        "the caller's cost counts"
    );
}

/// LIM-1: a call that asks for more than the budget ever holds fails, and keeps no other call
/// waiting.
#[tokio::test(start_paused = true)]
async fn lim_1_more_than_the_budget_holds_is_no_endless_wait() {
    let does = |text: &str| {
        let requested = if text.contains("large") { 152.0 } else { 5.0 };
        CallBehavior { requested, actual: 5.0, takes: Duration::from_millis(10) }
    };
    let (store, shop) = (memory(), FakeShop::new(100.0, 10.0, does));
    let engine = open(&store, &shop).await;
    let large = engine.submit(graphql("a", "{ large(first: 90) { nodes { id } } }")).await.unwrap().id;
    let small = engine.submit(graphql("b", "{ small { id } }")).await.unwrap().id;
    let view = engine.wait(large, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Failed, 1));
    assert!(view.fault.unwrap().message.contains("it asks for 152 points"), "it says why");
    assert_eq!(engine.wait(small, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(*shop.turned_away.lock().unwrap(), 1);
}
