//! Reads the server-sent events of another node, one message at a time and in bounded memory.

use axum::body::Body;
use bytes::BytesMut;
use http_body_util::BodyExt;
use tidegate_core::bounds::PARTITION_RESPONSE_LEN_MAX;

/// The longest message, with the result of an operation in it.
const MESSAGE_LEN_MAX: usize = PARTITION_RESPONSE_LEN_MAX;
/// The end of a message.
const BLANK_LINE: &[u8] = b"\n\n";

/// A message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SseMessage {
    pub id: String,
    pub name: String,
    pub data: String,
}

impl SseMessage {
    /// Parses the lines of a message; `None` for a comment.
    fn parse(lines: &[u8]) -> Option<Self> {
        let lines = std::str::from_utf8(lines).ok()?;
        let mut message = Self::default();
        for (field, value) in lines.lines().filter_map(|line| line.split_once(':')) {
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "id" => message.id = value,
                "event" => message.name = value,
                "data" => message.data = value,
                _ => {}
            }
        }
        (!message.name.is_empty()).then_some(message)
    }
}

/// Why there is no next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFailure {
    /// The stream ended or broke.
    Closed,
    /// The next message is longer than is read.
    TooLong,
}

/// Reads messages from a body.
pub(super) struct SseReader {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer was searched for the end of a message.
    searched: usize,
}

impl SseReader {
    pub(super) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    pub(super) async fn next(&mut self) -> Result<SseMessage, StreamFailure> {
        loop {
            let from = self.searched.saturating_sub(1);
            let end = self.buffer[from..].windows(BLANK_LINE.len()).position(|pair| pair == BLANK_LINE);
            if let Some(end) = end {
                let lines = self.buffer.split_to(from + end + BLANK_LINE.len());
                self.searched = 0;
                if let Some(message) = SseMessage::parse(&lines) {
                    return Ok(message);
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MESSAGE_LEN_MAX {
                return Err(StreamFailure::TooLong);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(_)) | None => return Err(StreamFailure::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    fn reader(pieces: Vec<Vec<u8>>) -> SseReader {
        let pieces = pieces.into_iter().map(Ok::<_, Infallible>);
        SseReader::new(Body::from_stream(stream::iter(pieces)))
    }

    /// However it is cut, and with comments in between.
    #[tokio::test]
    async fn messages_are_read_from_any_pieces() {
        let text =
            "id: 1\nevent: operation\ndata: {\"group\":\"ä: b\"}\n\n:\n\nevent:reset\ndata:{}\n\nid: 2\ne";
        for len in 1..text.len() {
            let mut reader = reader(text.as_bytes().chunks(len).map(<[u8]>::to_vec).collect());
            let first = reader.next().await.unwrap();
            assert_eq!((&*first.id, &*first.name), ("1", "operation"));
            assert_eq!(first.data, "{\"group\":\"ä: b\"}");
            assert_eq!(reader.next().await.unwrap().name, "reset");
            assert_eq!(reader.next().await, Err(StreamFailure::Closed), "what is cut off is no message");
        }
    }

    #[tokio::test]
    async fn a_message_is_bounded() {
        let piece = vec![b'x'; 1024 * 1024];
        let mut reader = reader(vec![piece; MESSAGE_LEN_MAX / (1024 * 1024) + 2]);
        assert_eq!(reader.next().await, Err(StreamFailure::TooLong));
        assert!(reader.buffer.len() <= MESSAGE_LEN_MAX + 1024 * 1024);
    }
}
