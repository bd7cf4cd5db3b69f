//! A streamed body: a few chunks are in memory at a time, and the sender waits for the reader. A
//! body that breaks off is an error to its reader, however its sender ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The maximum number of chunks between the two ends.
const PIECES_MAX: usize = 4;

enum Piece {
    Data(Bytes),
    End,
}

/// The sending end of a body.
#[derive(Debug)]
pub struct BodySender(mpsc::Sender<Piece>);

/// The reader of the body is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyReaderGone;

/// The reading end of a body.
#[derive(Debug)]
pub struct StreamedBody {
    pieces: mpsc::Receiver<Piece>,
    /// The number of bytes still to come, if known.
    left: Option<u64>,
    has_ended: bool,
}

/// Creates both ends of a body, whose length may be known.
#[must_use]
pub fn channel(len: Option<u64>) -> (BodySender, StreamedBody) {
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    (BodySender(sender), StreamedBody { pieces, left: len, has_ended: false })
}

impl BodySender {
    /// Sends a chunk, when there is room for it.
    ///
    /// # Errors
    /// When the reader is gone.
    pub async fn send(&self, piece: Bytes) -> Result<(), BodyReaderGone> {
        if piece.is_empty() {
            return Ok(());
        }
        self.0.send(Piece::Data(piece)).await.map_err(|_| BodyReaderGone)
    }

    /// Ends the body. Dropping the sender without this breaks it off.
    ///
    /// # Errors
    /// When the reader is gone.
    pub async fn end(self) -> Result<(), BodyReaderGone> {
        self.0.send(Piece::End).await.map_err(|_| BodyReaderGone)
    }

    /// Resolves when the reader is gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.pieces.poll_recv(context)) {
            Some(Piece::Data(bytes)) => {
                self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Piece::End) => {
                self.has_ended = true;
                Poll::Ready(None)
            }
            None => {
                self.has_ended = true;
                Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the body broke off"))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(body: &mut StreamedBody) -> Option<io::Result<Bytes>> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap()))
    }

    /// LIM-28: a body that was not ended is incomplete, and a sender never runs ahead of its
    /// reader.
    #[tokio::test]
    async fn lim_28_a_body_is_whole_or_broken_off() {
        let (sender, mut body) = channel(Some(2));
        for piece in ["a", "b"] {
            sender.send(Bytes::from_static(piece.as_bytes())).await.unwrap();
        }
        sender.end().await.unwrap();
        assert_eq!(body.size_hint().exact(), Some(2));
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "a");
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "b");
        assert!(next(&mut body).await.is_none());

        let (sender, mut body) = channel(None);
        for _ in 0..PIECES_MAX {
            sender.send(Bytes::from_static(b"x")).await.unwrap();
        }
        let more = tokio::time::timeout(std::time::Duration::ZERO, sender.send(Bytes::from_static(b"x")));
        assert!(more.await.is_err(), "there is no room before somebody reads");
        drop(sender);
        for _ in 0..PIECES_MAX {
            assert_eq!(next(&mut body).await.unwrap().unwrap(), "x");
        }
        assert!(next(&mut body).await.unwrap().is_err() && next(&mut body).await.is_none());

        let (sender, body) = channel(None);
        drop(body);
        sender.closed().await;
        assert_eq!(sender.send(Bytes::from_static(b"x")).await, Err(BodyReaderGone));
    }
}
