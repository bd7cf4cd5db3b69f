//! Bodies that are streamed: those of any size without a key, which are not buffered, and events
//! under a key.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tidegate_idempotency::{BoxError, LayerBody, Policy};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep, timeout};

use crate::service::{Count, full, serving};
use crate::world::{PATIENCE, World, at};

const PIECE: usize = 256 << 10;
const PIECES: usize = 512;
/// The most pieces in flight: buffers of sockets and of HTTP, far less than the whole body.
const ON_THE_WAY_MAX: usize = 200;

/// A body that counts the pieces that were read from it.
fn counted(count: Count) -> LayerBody {
    let pieces = stream::unfold(0, move |n| {
        let count = count.clone();
        async move {
            count.add(1);
            let piece = Frame::data(Bytes::from(vec![b'x'; PIECE]));
            (n < PIECES).then(|| (Ok::<_, BoxError>(piece), n + 1))
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

async fn length(mut body: Incoming) -> usize {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.unwrap().into_data().map_or(0, |data| data.len());
    }
    length
}

/// Waits until a count no longer changes.
async fn stands_still(count: &Count) -> usize {
    let mut before = usize::MAX;
    while before != count.get() {
        before = count.get();
        sleep(Duration::from_millis(300)).await;
    }
    before
}

/// IDM-11: 128 MiB each way: nothing is read from one side that the other does not read.
#[tokio::test]
async fn idm_11_large_bodies_pass_without_being_kept() {
    let (read, given) = (Arc::new(Notify::new()), Count::default());
    let (reading, giving) = (Arc::clone(&read), given.clone());
    let addr = serving(move |request: Request<Incoming>| {
        let (read, given) = (Arc::clone(&reading), giving.clone());
        async move {
            read.notified().await;
            assert_eq!(length(request.into_body()).await, PIECE * PIECES);
            Response::new(counted(given))
        }
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    let sent = Count::default();
    let asking = world.begin(Request::post(world.url("/upload")), counted(sent.clone()));
    let checking = async {
        let on_the_way = stands_still(&sent).await;
        assert!(on_the_way < ON_THE_WAY_MAX, "{on_the_way} pieces taken, none read");
        read.notify_one();
    };
    let (answer, ()) = timeout(PATIENCE, async { tokio::join!(asking, checking) }).await.unwrap();
    let on_the_way = timeout(PATIENCE, stands_still(&given)).await.unwrap();
    assert!(on_the_way < ON_THE_WAY_MAX, "{on_the_way} pieces given, none read");
    let got = timeout(PATIENCE, length(answer.into_body())).await.unwrap();
    assert_eq!(got, PIECE * PIECES);
}

/// IDM-11: each event under a key arrives when it was sent, and a retry gets them all.
#[tokio::test]
async fn idm_11_events_under_a_key_are_not_late() {
    let (seen, runs) = (Arc::new(Notify::new()), Count::default());
    let (next, begun) = (Arc::clone(&seen), runs.clone());
    let addr = serving(move |_| {
        begun.add(1);
        // Each event but the first is sent when its client has the one before.
        let events = stream::unfold((0, Arc::clone(&next)), |(nth, next)| async move {
            if nth > 0 {
                next.notified().await;
            }
            let event = Frame::data(Bytes::from(format!("data: {nth}\n\n")));
            (nth < 3).then(|| (Ok::<_, BoxError>(event), (nth + 1, next)))
        });
        let body = StreamBody::new(events).boxed_unsync();
        async move { Response::builder().header("content-type", "text/event-stream").body(body).unwrap() }
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    let request = || Request::post(world.url("/chat")).header("idempotency-key", "k");
    let mut events = world.begin(request(), full("{}")).await.into_body();
    for nth in 0..3 {
        let frame = timeout(PATIENCE, events.frame()).await.expect("an event that was sent arrives");
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), format!("data: {nth}\n\n"));
        seen.notify_one();
    }
    assert!(timeout(PATIENCE, events.frame()).await.unwrap().is_none());
    let again = world.ask(request(), full("{}")).await;
    assert_eq!(again.body, "data: 0\n\ndata: 1\n\ndata: 2\n\n");
    assert_eq!((again.headers["idempotent-replayed"].to_str().unwrap(), runs.get()), ("true", 1));
}
