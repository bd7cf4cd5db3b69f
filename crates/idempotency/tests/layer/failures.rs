//! Handlers that fail, panic, or return an error status; clients that disconnect.

use http::StatusCode;
use tidegate_idempotency::{OutcomeClass, Policy, UnknownOutcomePolicy};

use crate::world::{Handler, HandlerError, World, ms, post, secs, text};

/// IDM-3: a 4xx or 5xx response removes the record, so that the request can be retried.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_frees_the_key() {
    let world = World::new(Handler::with_statuses(&[500, 422, 429, 201]), Policy::default());
    for wanted in [500, 422, 429, 201] {
        let answer = world.post("k", "a").await;
        assert_eq!((answer.status, answer.is_replay()), (wanted, false));
    }
    assert!(world.post("k", "a").await.is_replay());
}

/// IDM-3: the classes that are saved are configurable; responses that say "not now" never are.
#[tokio::test(start_paused = true)]
async fn failed_answers_can_be_kept() {
    let keep = Policy::default().with_keep_client_errors(true).with_keep_server_errors(true);
    for status in [&[422_u16][..], &[500], &[502], &[404]] {
        let world = World::new(Handler::with_statuses(Box::leak(status.into())), keep.clone());
        world.post("k", "a").await;
        let again = world.post("k", "a").await;
        assert_eq!((again.status, again.is_replay()), (status[0], true));
    }
    let world = World::new(Handler::with_statuses(&[429, 201]), keep);
    world.post("k", "a").await;
    assert_eq!(world.post("k", "a").await.status, 201);
}

/// IDM-17, IDM-18: a handler that fails or panics does not leave the key stuck: by default it is
/// free again.
#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_frees_the_key() {
    let handler = Handler::new(|nth| async move {
        match nth {
            1 => Err(HandlerError),
            2 => panic!("the handler's own panic"),
            _ => Ok(text(StatusCode::CREATED, "made")),
        }
    });
    let world = World::new(handler, Policy::default());
    assert!(world.try_send(post("k", "a")).await.is_err(), "its error is its caller's");
    let panicked = world.post("k", "a").await;
    assert_eq!((panicked.status, panicked.code()), (500, "IDEMPOTENCY_HANDLER_FAILED"));
    assert_eq!(world.post("k", "a").await.text(), "made");
    assert!(world.post("k", "a").await.is_replay());
    assert_eq!(world.handler.runs(), 3);
}

/// IDM-18: if configured, an unknown outcome holds the key until it expires.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_can_be_held() {
    let hold = Policy::default().with_on_unknown(UnknownOutcomePolicy::Hold);
    let failing: [fn(usize) -> Handler; 3] = [
        |_| Handler::new(|_| async { Err(HandlerError) }),
        |_| Handler::new(|_| async { panic!("the handler's own panic") }),
        |_| {
            Handler::new(|_| async {
                let mut response = text(StatusCode::BAD_GATEWAY, "reset");
                response.extensions_mut().insert(OutcomeClass::Unknown);
                Ok(response)
            })
        },
    ];
    for (index, handler) in failing.iter().enumerate() {
        let world = World::new(handler(index), hold.clone());
        drop(world.try_send(post("k", "a")).await);
        let again = world.post("k", "a").await;
        assert_eq!((again.status, again.code()), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN"), "case {index}");
        assert_eq!(world.post("k", "b").await.code(), "IDEMPOTENCY_KEY_CONFLICT");
        tokio::time::sleep(secs(3_601)).await;
        drop(world.try_send(post("k", "a")).await);
        assert_eq!(world.handler.runs(), 2, "case {index}: after its time the key is new");
    }
}

/// IDM-18: a request that was never sent frees the key even where unknown outcomes are held.
#[tokio::test(start_paused = true)]
async fn what_was_never_sent_frees_the_key() {
    let handler = Handler::new(|nth| async move {
        let mut response = text(StatusCode::BAD_GATEWAY, "refused");
        if nth == 1 {
            response.extensions_mut().insert(OutcomeClass::NotStarted);
            return Ok(response);
        }
        Ok(text(StatusCode::CREATED, "made"))
    });
    let world = World::new(handler, Policy::default().with_on_unknown(UnknownOutcomePolicy::Hold));
    assert_eq!(world.post("k", "a").await.status, 502);
    assert_eq!(world.post("k", "a").await.text(), "made");
}

/// IDM-17: the handler runs to its end when its client disconnects, and the retry gets its
/// response.
#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_finds_the_answer_when_it_comes_back() {
    let world = World::new(Handler::slow(secs(5)), Policy::default());
    let gone = tokio::time::timeout(ms(100), world.post("k", "a")).await;
    assert!(gone.is_err());
    assert_eq!(world.post("k", "a").await.code(), "IDEMPOTENCY_KEY_PROCESSING");
    tokio::time::sleep(secs(6)).await;
    let again = world.post("k", "a").await;
    assert_eq!((again.text(), again.is_replay()), ("made 1", true));
    assert_eq!(world.handler.runs(), 1);
}
