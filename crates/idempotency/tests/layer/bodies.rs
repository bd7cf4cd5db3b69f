//! Request bodies together: their memory budget, and the minimum rate of a client.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tidegate_idempotency::{BoxError, KeyStore, LayerBody, Policy};
use tokio::time::Instant;

use crate::world::{Answer, Handler, World, ms, post, secs, store};

/// A request whose pieces come one after the other, each after a pause.
fn dripping(key: &str, pieces: Vec<(Duration, usize)>) -> Request<LayerBody> {
    let pieces = stream::iter(pieces).then(|(pause, len)| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b'x'; len])))
    });
    post(key, "").map(|_| StreamBody::new(pieces).boxed_unsync())
}

/// A process with a budget of this many bytes.
fn with_room(bytes: usize, policy: Policy) -> World {
    let store = store();
    let gate = KeyStore::new(store.clone()).with_bodies_max(bytes);
    World::behind(gate, store, Handler::creating(), policy)
}

fn sending(world: &World, request: Request<LayerBody>) -> tokio::task::JoinHandle<Answer> {
    let world = world.clone();
    tokio::spawn(async move { world.send_body(request).await })
}

/// IDM-11: all bodies together are bounded. One that finds no room waits briefly, and is then told
/// to retry.
#[tokio::test(start_paused = true)]
async fn idm_11_bodies_that_find_no_room_are_refused() {
    let world = with_room(1_000, Policy::default());
    let holding = sending(&world, dripping("slow", vec![(ms(1), 900), (secs(5), 50)]));
    tokio::time::sleep(ms(10)).await;
    let start = Instant::now();
    let refused = world.post("k", &"y".repeat(200)).await;
    assert_eq!((refused.status, refused.code()), (503, "IDEMPOTENCY_BODIES_FULL"));
    assert_eq!(refused.headers["retry-after"], "1");
    assert!((secs(2)..secs(3)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(world.post("small", "y").await.status, 201, "there is room for a small one");
    assert_eq!(holding.await.unwrap().status, 201);
    assert_eq!(world.post("k", &"y".repeat(200)).await.status, 201, "the room is free again");
    let never = world.post("large", &"y".repeat(1_001)).await;
    assert_eq!((never.status, never.code()), (413, "IDEMPOTENCY_BODY_TOO_LARGE"));
}

/// IDM-11: memory that is freed in time goes to a waiter, also where two fill it together.
#[tokio::test(start_paused = true)]
async fn idm_11_bodies_wait_for_room() {
    let world = with_room(1_000, Policy::default());
    let first = sending(&world, dripping("a", vec![(ms(1), 900), (secs(1), 10)]));
    let second = sending(&world, dripping("b", vec![(ms(2), 90), (ms(1), 400)]));
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().status, 201);
    }
}

/// IDM-11: a client keeps a minimum rate over each ten seconds, however fast it began; otherwise it
/// is rejected, and its memory is freed.
#[tokio::test(start_paused = true)]
async fn idm_11_a_client_that_drips_is_refused() {
    let world = with_room(100 << 10, Policy::default());
    let drips = |first: usize| std::iter::once((ms(1), first)).chain((0..60).map(|_| (secs(1), 1)));
    for (first, after) in [(1, secs(10)), (90 << 10, secs(20))] {
        let start = Instant::now();
        let refused = world.send_body(dripping("k", drips(first).collect())).await;
        assert_eq!((refused.status, refused.code()), (408, "IDEMPOTENCY_BODY_TOO_SLOW"));
        assert!((after..after + secs(1)).contains(&start.elapsed()), "{:?}", start.elapsed());
    }
    let steady = (0..60).map(|_| (secs(1), 1_100)).collect();
    assert_eq!(world.send_body(dripping("k", steady)).await.status, 201);
    assert_eq!(world.handler.runs(), 1);
    let patient = with_room(100 << 10, Policy::default().with_body_rate_min(0));
    assert_eq!(patient.send_body(dripping("k", drips(1).collect())).await.status, 201);
}

/// The time that a client waits for memory is not counted against it.
#[tokio::test(start_paused = true)]
async fn waiting_for_room_is_not_dripping() {
    let world = with_room(20 << 10, Policy::default());
    let holding = sending(&world, dripping("slow", vec![(secs(9), 15 << 10), (ms(1_500), 1)]));
    let waiting = dripping("k", vec![(ms(9_500), 10 << 10), (ms(1), 1)]);
    assert_eq!(world.send_body(waiting).await.status, 201);
    assert_eq!(holding.await.unwrap().status, 201);
}

/// A body in very small pieces is the same body, and reaches the handler whole.
#[tokio::test(start_paused = true)]
async fn small_pieces_are_joined() {
    let world = World::new(Handler::creating(), Policy::default());
    let sizes = [1; 3_000].into_iter().chain([20 << 10, 5, 17 << 10, 70 << 10, 1, 1]);
    let pieces: Vec<_> = sizes.map(|len| (Duration::ZERO, len)).collect();
    let len = pieces.iter().map(|(_, len)| len).sum();
    assert_eq!(world.send_body(dripping("k", pieces)).await.status, 201);
    assert_eq!(world.handler.bodies(), [Bytes::from(vec![b'x'; len])]);
    assert!(world.post("k", &"x".repeat(len)).await.is_replay());
}
