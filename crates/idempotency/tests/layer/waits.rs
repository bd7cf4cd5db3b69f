//! Retries that wait for the first response.

use http::StatusCode;
use tidegate_idempotency::{InFlightPolicy, OutcomeClass, Policy};

use crate::world::{Answer, Handler, World, ms, secs, text};

fn waiting(at_most: std::time::Duration) -> Policy {
    Policy::default().with_in_flight(InFlightPolicy::Wait(at_most))
}

async fn at_once(world: &World, count: usize) -> Vec<Answer> {
    let requests = (0..count).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.post("k", "a").await })
    });
    let mut answers = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        answers.push(request.await.unwrap());
    }
    answers
}

/// IDM-15: a hundred concurrent requests get one response, one of them its own.
#[tokio::test(start_paused = true)]
async fn all_get_the_first_ones_answer() {
    let world = World::new(Handler::slow(ms(50)), waiting(secs(10)));
    let answers = at_once(&world, 100).await;
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.text() == "made 1"));
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-15: the wait is bounded, and ends with `Retry-After`.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_ends_with_409() {
    let world = World::new(Handler::slow(secs(60)), waiting(secs(2)));
    let start = tokio::time::Instant::now();
    let first = world.clone();
    tokio::spawn(async move { first.post("k", "a").await });
    tokio::task::yield_now().await;
    let second = world.post("k", "a").await;
    assert_eq!(second.code(), "IDEMPOTENCY_KEY_PROCESSING");
    assert_eq!(second.headers["retry-after"], "1");
    assert!((secs(2)..secs(4)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// IDM-15: when the first request fails, exactly one of the waiters runs, and the rest wait for
/// that one.
#[tokio::test(start_paused = true)]
async fn when_the_first_fails_one_of_the_waiters_runs() {
    let handler = Handler::new(|nth| async move {
        tokio::time::sleep(ms(50)).await;
        let status = if nth < 3 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
        Ok(text(status, &format!("answer {nth}")))
    });
    let world = World::new(handler, waiting(secs(10)));
    let answers = at_once(&world, 50).await;
    assert_eq!(world.handler.runs(), 3);
    assert_eq!(answers.iter().filter(|answer| answer.status == 500).count(), 2);
    assert_eq!(answers.iter().filter(|answer| answer.text() == "answer 3").count(), 48);
}

/// IDM-15, IDM-18: when the outcome of the first request is unknown, none of the waiters runs: it
/// may still be at work. One that comes later does.
#[tokio::test(start_paused = true)]
async fn idm_18_when_the_outcome_is_unknown_no_waiter_runs() {
    let handler = Handler::new(|nth| async move {
        tokio::time::sleep(ms(50)).await;
        match nth {
            1 => {
                let mut response = text(StatusCode::GATEWAY_TIMEOUT, "late");
                response.extensions_mut().insert(OutcomeClass::Unknown);
                Ok(response)
            }
            _ => Ok(text(StatusCode::CREATED, "made")),
        }
    });
    let world = World::new(handler, waiting(secs(10)));
    let answers = at_once(&world, 50).await;
    assert_eq!(world.handler.runs(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 504).count(), 1);
    let told = answers.iter().filter(|answer| answer.code() == "IDEMPOTENCY_OUTCOME_UNKNOWN");
    assert_eq!(told.count(), 49);
    assert_eq!(world.post("k", "a").await.text(), "made");
    assert_eq!(world.handler.runs(), 2);
}

/// IDM-15: the number of waiters is limited; the others get 409 at once.
#[tokio::test(start_paused = true)]
async fn places_to_wait_are_bounded() {
    let world = World::new(Handler::slow(secs(1)), waiting(secs(10)));
    let answers = at_once(&world, 400).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 257);
    assert_eq!(answers.iter().filter(|answer| answer.code() == "IDEMPOTENCY_KEY_PROCESSING").count(), 143);
}

/// IDM-15: the default is 409 at once, with `Retry-After`.
#[tokio::test(start_paused = true)]
async fn the_default_is_to_reject() {
    let world = World::new(Handler::slow(ms(50)), Policy::default());
    let answers = at_once(&world, 100).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    let rejected = answers.iter().filter(|answer| answer.code() == "IDEMPOTENCY_KEY_PROCESSING");
    assert_eq!(rejected.filter(|answer| answer.headers["retry-after"] == "1").count(), 99);
    assert_eq!(world.handler.runs(), 1);
}
