//! Bodies that are large, split into pieces, broken, or empty, in requests and responses.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody};
use tidegate_idempotency::{BoxError, LayerBody, Policy};

use crate::recorder::counting;
use crate::world::{Handler, World, post};

type Piece = Result<Frame<Bytes>, BoxError>;

fn data(text: &'static str) -> Piece {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// A body of unknown length.
fn streamed(pieces: Vec<Piece>) -> LayerBody {
    StreamBody::new(stream::iter(pieces)).boxed_unsync()
}

fn small() -> Policy {
    Policy::default().with_request_max(8).with_answer_max(8)
}

fn request(pieces: Vec<Piece>) -> Request<LayerBody> {
    post("k", "").map(|_| streamed(pieces))
}

/// IDM-11, IDM-2: a streamed request is handled and compared as a whole: the pieces in which it
/// arrives do not count.
#[tokio::test(start_paused = true)]
async fn a_body_in_pieces_is_the_same_body() {
    let world = World::new(Handler::creating(), Policy::default());
    world.post("k", "abc").await;
    assert!(world.send_body(request(vec![data("a"), data(""), data("b"), data("c")])).await.is_replay());
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-11: a body above the limit is rejected, before it is read where its length is known, and
/// leaves no record.
#[tokio::test(start_paused = true)]
async fn a_request_too_large_is_refused_and_leaves_nothing() {
    let world = World::new(Handler::creating(), small());
    let known = world.post("k", "123456789").await;
    assert_eq!((known.status, known.code()), (413, "IDEMPOTENCY_BODY_TOO_LARGE"));
    let unknown = world.send_body(request(vec![data("12345"), data("6789"), data("never read")])).await;
    assert_eq!((unknown.status, unknown.code()), (413, "IDEMPOTENCY_BODY_TOO_LARGE"));
    assert_eq!(world.store.fault_counts().calls, 0);
    assert_eq!(world.post("k", "12345678").await.text(), "made 1");
}

/// A truncated request is not handled.
#[tokio::test(start_paused = true)]
async fn a_broken_request_is_not_handled() {
    let world = World::new(Handler::creating(), Policy::default());
    let broken = world.send_body(request(vec![data("1234"), Err("reset".into())])).await;
    assert_eq!((broken.status, broken.code()), (400, "IDEMPOTENCY_BODY_INCOMPLETE"));
    assert_eq!((world.handler.runs(), world.store.fault_counts().calls), (0, 0));
    assert_eq!(world.post("k", "1234").await.text(), "made 1");
}

fn answering(body: impl Fn() -> LayerBody + Send + Sync + 'static) -> Handler {
    Handler::new(move |_| {
        let response = Response::new(body());
        async move { Ok(response) }
    })
}

/// IDM-11: a response above the limit reaches its client whole and is counted; a retry learns that
/// it was sent, and nothing runs again.
#[tokio::test(start_paused = true)]
async fn an_answer_too_large_is_given_once_and_not_run_again() {
    let counted = counting();
    let known = || Full::from("123456789").map_err(|never| match never {}).boxed_unsync();
    let unknown = || streamed(vec![data("12345"), data("6"), data("789")]);
    for handler in [answering(known), answering(unknown)] {
        let world = World::new(handler, small());
        let first = world.post("k", "a").await;
        assert_eq!((first.status, first.text()), (200, "123456789"));
        let again = world.post("k", "a").await;
        assert_eq!((again.status, again.code()), (409, "IDEMPOTENCY_ANSWER_NOT_REPLAYABLE"));
        assert_eq!(world.handler.runs(), 1);
    }
    assert_eq!(counted.of("idempotency_not_replayable"), 2);
}

/// IDM-11: a response of any size is saved where the limit allows it, whether its length is known
/// or not.
#[tokio::test(start_paused = true)]
async fn a_large_answer_is_kept() {
    const PIECE: &str = "0123456789abcdef";
    const PIECES: usize = 512 << 10;
    let known = || Full::from(PIECE.repeat(PIECES)).map_err(|never| match never {}).boxed_unsync();
    let unknown = || StreamBody::new(stream::iter((0..PIECES).map(|_| data(PIECE)))).boxed_unsync();
    for handler in [answering(known), answering(unknown)] {
        let world = World::new(handler, Policy::default().with_answer_max(8 << 20));
        let (first, again) = (world.post("k", "a").await, world.post("k", "a").await);
        assert!(!first.is_replay() && again.is_replay());
        assert!(first.text().len() == 8 << 20 && first.text() == again.text());
        assert_eq!(world.handler.runs(), 1);
    }
}

/// IDM-11: a streamed response is saved with its trailers, and a retry gets both.
#[tokio::test(start_paused = true)]
async fn a_streamed_answer_is_kept() {
    let handler = answering(|| {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-checksum"),
            HeaderValue::from_static("7"),
        )]);
        streamed(vec![data("12"), data("34"), Ok(Frame::trailers(trailers))])
    });
    let world = World::new(handler, small());
    let first = world.post("k", "a").await;
    let again = world.post("k", "a").await;
    assert!(!first.is_replay() && again.is_replay());
    for answer in [first, again] {
        assert_eq!(answer.text(), "1234");
        assert_eq!(answer.trailers.unwrap()["x-checksum"], "7");
    }
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-11: a streamed response is relayed as it comes: the client sees each piece when it is there.
#[tokio::test(start_paused = true)]
async fn a_streamed_answer_flows() {
    let handler = Handler::new(|_| async {
        let pieces = stream::unfold(0_u32, |nth| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            (nth < 4).then(|| (Ok(Frame::data(Bytes::from_static(b"x"))), nth + 1))
        });
        Ok(Response::new(StreamBody::new(pieces).boxed_unsync()))
    });
    let world = World::new(handler, Policy::default());
    let start = tokio::time::Instant::now();
    let mut body = world.try_send(post("k", "a")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 5, "not with the second piece");
    assert_eq!(body.collect().await.unwrap().to_bytes(), "xxx");
    assert!(world.post("k", "a").await.is_replay());
}

/// A broken response is not saved; its outcome is unknown, so the key is free again.
#[tokio::test(start_paused = true)]
async fn a_broken_answer_is_not_kept() {
    let handler = Handler::new(|nth| async move {
        let pieces = if nth == 1 { vec![data("12"), Err("reset".into())] } else { vec![data("1234")] };
        Ok(Response::new(streamed(pieces)))
    });
    let world = World::new(handler, Policy::default());
    assert_eq!(world.post("k", "a").await.body, None, "the client sees that it broke");
    assert_eq!(world.post("k", "a").await.text(), "1234");
    assert!(world.post("k", "a").await.is_replay());
    assert_eq!(world.handler.runs(), 2);
}

/// A body that announces its length and ends before.
struct TruncatedBody(Option<Piece>);

impl http_body::Body for TruncatedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Piece>> {
        Poll::Ready(Some(self.0.take().unwrap_or_else(|| Err("reset".into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(4)
    }
}

/// IDM-18, IDM-11: nothing of a broken response of known length was sent yet: the client gets a
/// complete error response, and the key is free.
#[tokio::test(start_paused = true)]
async fn a_broken_answer_of_known_length_is_a_refusal() {
    let handler = Handler::new(|nth| async move {
        let whole = || streamed(vec![data("1234")]);
        Ok(Response::new(if nth == 1 { TruncatedBody(Some(data("12"))).boxed_unsync() } else { whole() }))
    });
    let world = World::new(handler, Policy::default());
    let broken = world.post("k", "a").await;
    assert_eq!((broken.status, broken.code()), (502, "IDEMPOTENCY_ANSWER_BROKEN"));
    assert_eq!(world.post("k", "a").await.text(), "1234");
    assert!(world.post("k", "a").await.is_replay());
    assert_eq!(world.handler.runs(), 2);
}

/// Responses without a body, and binary ones, are replayed as they were.
#[tokio::test(start_paused = true)]
async fn empty_answers_come_back_empty() {
    for status in [204, 303] {
        let handler = Handler::new(move |_| async move {
            let mut response = Response::new(Full::default().map_err(|never| match never {}).boxed_unsync());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response.headers_mut().insert("content-encoding", HeaderValue::from_static("gzip"));
            response.headers_mut().insert("transfer-encoding", HeaderValue::from_static("chunked"));
            Ok(response)
        });
        let world = World::new(handler, Policy::default());
        world.post("k", "a").await;
        let again = world.post("k", "a").await;
        assert_eq!((again.status, again.text(), again.is_replay()), (status, "", true));
        assert_eq!(again.headers["content-encoding"], "gzip");
        assert!(!again.headers.contains_key("transfer-encoding"));
    }
}
