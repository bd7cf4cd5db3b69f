//! The least that speaks HTTP/1.1 on a connection that is kept: sends a text, reads an answer with its length. No
//! pool, no redirects, no chunks: what it costs is taken from the server it measures.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a server answers to an operation that it accepted.
const ACCEPTED: &str = "202";
/// Largest answer that is read.
const ANSWER_LEN_MAX: usize = 16 * 1024 * 1024;

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) async fn connect(addr: SocketAddr) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{addr}: {error}");
        let stream = TcpStream::connect(addr).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and waits for its answer, which must be an acceptance.
    pub(super) async fn post(&mut self, request: &[u8]) -> Result<(), String> {
        self.stream.write_all(request).await.map_err(|error| format!("a request was not sent: {error}"))?;
        self.buffer.clear();
        let mut whole = None;
        loop {
            if whole.is_none() {
                whole = answer(&self.buffer)?;
            }
            match whole {
                Some(len) if self.buffer.len() >= len => return Ok(()),
                Some(len) => self.buffer.reserve(len - self.buffer.len()),
                None => {}
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| format!("an answer was not read: {error}"))? == 0 {
                return Err("the server closed a connection before it answered".into());
            }
        }
    }
}

/// The length of the whole answer, as soon as its head is there.
fn answer(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "an answer's head is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    if status != ACCEPTED {
        return Err(format!("the server answered {status:?} where {ACCEPTED} was expected"));
    }
    let len = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match len {
        Some(len) if len <= ANSWER_LEN_MAX => Ok(Some(end + 4 + len)),
        Some(len) => Err(format!("an answer has {len} bytes; at most {ANSWER_LEN_MAX} are read")),
        None => Err("an answer does not say its length".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn the_length_is_known_once_the_head_is_whole() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        let head = whole.len() - 5;
        assert_eq!(answer(&whole[..head - 1]), Ok(None));
        assert_eq!(answer(&whole[..head]), Ok(Some(whole.len())));
        assert_eq!(answer(whole), Ok(Some(whole.len())));
    }

    #[test]
    fn refusals_and_answers_without_a_length_are_errors() {
        assert!(answer(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(answer(b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(answer(b"HTTP/1.1 202 Accepted\r\ncontent-length: 99999999999\r\n\r\n").is_err());
    }
}
