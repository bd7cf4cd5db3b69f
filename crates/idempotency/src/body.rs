//! Bodies: one that is buffered whole, and one that is relayed frame by frame while a copy is kept.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::mpsc;

/// Any error of another body or service.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of the requests that a layer passes on and of the responses that it returns.
pub type LayerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Boxes a body without buffering it.
pub(crate) fn box_body<B>(body: B) -> LayerBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// A body that was read completely.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectedBody {
    pieces: VecDeque<Bytes>,
    len: u64,
    pub(crate) trailers: Option<HeaderMap>,
}

impl CollectedBody {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len() as u64;
            self.pieces.push_back(piece);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Joins all pieces into one.
    pub(crate) fn to_bytes(&self) -> Bytes {
        match self.pieces.len() {
            0 => Bytes::new(),
            1 => self.pieces[0].clone(),
            _ => self
                .pieces
                .iter()
                .fold(Vec::with_capacity(self.len as usize), |mut all, piece| {
                    all.extend_from_slice(piece);
                    all
                })
                .into(),
        }
    }

    pub(crate) fn into_body(self) -> LayerBody {
        self.map_err(|never| match never {}).boxed_unsync()
    }
}

impl From<Bytes> for CollectedBody {
    fn from(whole: Bytes) -> Self {
        let mut pieces = Self::default();
        pieces.push(whole);
        pieces
    }
}

impl http_body::Body for CollectedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(piece) = self.pieces.pop_front() {
            self.len -= piece.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::with_exact(self.len);
        if self.trailers.is_some() {
            // A content length that is announced up front leaves no room for trailers.
            hint = SizeHint::new();
            hint.set_lower(self.len);
        }
        hint
    }
}

/// A part of a response that is relayed to a client: frames, and optionally the rest of the body as
/// it comes.
pub(crate) enum ResponseFrame {
    Frame(Frame<Bytes>),
    Broken(BoxError),
    Rest(LayerBody),
}

/// The sending end. What is queued is bounded by what may be saved: whoever has more to send passes
/// the rest as a body.
pub(crate) type ResponseFrameSender = mpsc::UnboundedSender<ResponseFrame>;

/// The end that a client reads from.
struct ChannelBody {
    queue: mpsc::UnboundedReceiver<ResponseFrame>,
    rest: Option<LayerBody>,
}

/// Creates a body whose frames are sent through a channel.
pub(crate) fn channel_body() -> (ResponseFrameSender, LayerBody) {
    let (hand, queue) = mpsc::unbounded_channel();
    (hand, ChannelBody { queue, rest: None }.boxed_unsync())
}

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(rest) = &mut self.rest {
                return Pin::new(rest).poll_frame(context);
            }
            match std::task::ready!(self.queue.poll_recv(context)) {
                None => return Poll::Ready(None),
                Some(ResponseFrame::Frame(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(ResponseFrame::Broken(cause)) => return Poll::Ready(Some(Err(cause))),
                Some(ResponseFrame::Rest(rest)) => self.rest = Some(rest),
            }
        }
    }
}
