//! Tracks whether a request has been sent. The connection asks this body for its bytes right before
//! it writes the first one, so asking and withdrawing exclude each other: a request that was
//! withdrawn in time is never sent, and one that may have been sent is never called unsent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::stream::StreamedBody;

const PENDING: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The sender's end: reports and decides whether the request has been sent.
#[derive(Clone, Debug, Default)]
pub struct SendState {
    state: Arc<AtomicU8>,
    pieces: Arc<AtomicU64>,
}

impl SendState {
    /// Keeps the request from being sent. True when it has not been sent, and then it never will
    /// be.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.transition(WITHDRAWN)
    }

    /// The number of chunks of its body requested so far.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    fn mark_sent(&self) -> bool {
        self.transition(SENT)
    }

    fn is_withdrawn(&self) -> bool {
        self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    /// The first transition wins; true when the state is `to`.
    fn transition(&self, to: u8) -> bool {
        match self.state.compare_exchange(PENDING, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(stands) => stands == to,
        }
    }
}

/// The connection's end: a body that can be sent once.
#[derive(Debug)]
pub struct WithdrawableBody {
    content: BodySource,
    departure: SendState,
    /// Whether its length is sent even when it is empty.
    declares_length: bool,
}

#[derive(Debug)]
enum BodySource {
    Bytes(Bytes),
    Stream(StreamedBody),
}

impl WithdrawableBody {
    /// Creates a body of these bytes, and the sender's end of it.
    #[must_use]
    pub fn new(bytes: Bytes) -> (Self, SendState) {
        Self::of(BodySource::Bytes(bytes))
    }

    /// Creates a streamed body, and the sender's end of it.
    #[must_use]
    pub fn streamed(body: StreamedBody) -> (Self, SendState) {
        Self::of(BodySource::Stream(body))
    }

    fn of(content: BodySource) -> (Self, SendState) {
        let departure = SendState::default();
        (Self { content, departure: departure.clone(), declares_length: false }, departure)
    }

    /// Sends its length even when it is empty. The connection adds the header: one that is set
    /// beforehand would keep it from asking a withdrawn request for its bytes.
    #[must_use]
    pub fn with_declared_length(self) -> Self {
        Self { declares_length: true, ..self }
    }
}

impl Body for WithdrawableBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.departure.mark_sent() {
            return Poll::Ready(Some(Err(io::Error::other("the request was withdrawn"))));
        }
        let piece = match &mut self.content {
            BodySource::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            BodySource::Stream(body) => Pin::new(body).poll_frame(context),
        };
        if piece.is_ready() {
            self.departure.pieces.fetch_add(1, Ordering::Relaxed);
        }
        piece
    }

    /// The connection's first question, even to an empty body. A withdrawn request claims that more
    /// is to come and then fails, which ends the connection before anything is written.
    fn is_end_stream(&self) -> bool {
        let is_empty = matches!(&self.content, BodySource::Bytes(bytes) if bytes.is_empty());
        self.departure.mark_sent() && is_empty && !self.declares_length
    }

    /// Its length. A withdrawn request claims a byte even when it has none; otherwise the
    /// connection would not ask for it, and would send the request.
    fn size_hint(&self) -> SizeHint {
        let least = u64::from(self.departure.is_withdrawn());
        match &self.content {
            BodySource::Bytes(bytes) => SizeHint::with_exact((bytes.len() as u64).max(least)),
            BodySource::Stream(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_and_withdrawing_exclude_each_other() {
        let (body, departure) = WithdrawableBody::new(Bytes::new());
        assert!(body.is_end_stream());
        assert!(!departure.withdraw(), "it has left");

        let (body, departure) = WithdrawableBody::new(Bytes::new());
        let body = body.with_declared_length();
        assert!(!body.is_end_stream(), "the connection asks for its length");
        assert!(!departure.withdraw(), "it has left");
        assert_eq!(body.size_hint().exact(), Some(0));

        let (mut body, departure) = WithdrawableBody::new(Bytes::from_static(b"x"));
        assert!(departure.withdraw() && departure.withdraw());
        assert!(!body.is_end_stream());
        let (empty, departure) = WithdrawableBody::new(Bytes::new());
        assert_eq!(empty.size_hint().exact(), Some(0));
        assert!(departure.withdraw());
        assert_eq!(empty.size_hint().exact(), Some(1));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut context), Poll::Ready(Some(Err(_)))));
    }
}
