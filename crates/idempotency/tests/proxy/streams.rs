//! Bodies of any size without a key: they pass as they come, and nobody keeps them on the way.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tidegate_idempotency::{Body, BoxError, Policy};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep, timeout};

use crate::service::{Count, serving};
use crate::world::{PATIENCE, World, at};

const PIECE: usize = 256 << 10;
const PIECES: usize = 512;
/// What may lie on the way: buffers of sockets and of HTTP, far less than all of it.
const ON_THE_WAY_MAX: usize = 200;

/// A body that counts the pieces that were taken of it.
fn counted(count: Count) -> Body {
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

/// Waits until a count stands still.
async fn stands_still(count: &Count) -> usize {
    let mut before = usize::MAX;
    while before != count.get() {
        before = count.get();
        sleep(Duration::from_millis(300)).await;
    }
    before
}

/// IDM-11: 128 MiB each way: nothing is taken from one side that the other does not read.
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
