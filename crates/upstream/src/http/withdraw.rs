//! Whether a request has left. The connection asks this body for its bytes right before it writes the first one,
//! so asking and withdrawing exclude each other: a request that was withdrawn in time never leaves, and one that may
//! have left is never called unsent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

const HERE: u8 = 0;
const LEFT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The sender's end: tells and decides whether the request has left.
#[derive(Clone, Debug, Default)]
pub struct Departure(Arc<AtomicU8>);

impl Departure {
    /// Keeps the request from leaving. True when it has not left, and then it never will.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.turn(WITHDRAWN)
    }

    fn leave(&self) -> bool {
        self.turn(LEFT)
    }

    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire) == WITHDRAWN
    }

    /// Whoever turns it first decides; true when it stands as asked.
    fn turn(&self, to: u8) -> bool {
        match self.0.compare_exchange(HERE, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(stands) => stands == to,
        }
    }
}

/// The connection's end: a body that can be sent once.
#[derive(Debug)]
pub struct Departing {
    bytes: Bytes,
    departure: Departure,
}

impl Departing {
    /// A body of these bytes, and the sender's end of it.
    #[must_use]
    pub fn new(bytes: Bytes) -> (Self, Departure) {
        let departure = Departure::default();
        (Self { bytes, departure: departure.clone() }, departure)
    }
}

impl Body for Departing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.departure.leave() {
            return Poll::Ready(Some(Err(io::Error::other("the request was withdrawn"))));
        }
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    /// The connection's first question, even to an empty body. A withdrawn request says that there is more to come
    /// and then fails, which ends the connection before anything is written.
    fn is_end_stream(&self) -> bool {
        self.departure.leave() && self.bytes.is_empty()
    }

    /// Its length. A withdrawn request claims a byte even when it has none, or it would not be asked for it and leave.
    fn size_hint(&self) -> SizeHint {
        let least = u64::from(self.departure.is_withdrawn());
        SizeHint::with_exact((self.bytes.len() as u64).max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_and_withdrawing_exclude_each_other() {
        let (body, departure) = Departing::new(Bytes::new());
        assert!(body.is_end_stream());
        assert!(!departure.withdraw(), "it has left");

        let (mut body, departure) = Departing::new(Bytes::from_static(b"x"));
        assert!(departure.withdraw() && departure.withdraw());
        assert!(!body.is_end_stream());
        let (empty, departure) = Departing::new(Bytes::new());
        assert_eq!(empty.size_hint().exact(), Some(0));
        assert!(departure.withdraw());
        assert_eq!(empty.size_hint().exact(), Some(1));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut context), Poll::Ready(Some(Err(_)))));
    }
}
