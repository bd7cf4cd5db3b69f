//! A minimal HTTP/1.1 client on a keep-alive connection: sends a text, reads a response with its
//! length. No pool, no redirects, no chunks: its cost reduces what is left for the server it
//! measures.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The status of an accepted operation.
const ACCEPTED: u16 = 202;
/// Bytes of a refusal that are reported.
const TOLD_MAX: usize = 300;
/// Largest response that is read.
const ANSWER_LEN_MAX: usize = 16 * 1024 * 1024;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{addr}: {error}");
        let stream = TcpStream::connect(addr).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and waits for its response, which must be an acceptance.
    pub(crate) async fn post(&mut self, request: &[u8]) -> Result<(), String> {
        match self.send(request).await? {
            (ACCEPTED, _) => Ok(()),
            (status, body) => {
                let told = String::from_utf8_lossy(&body[..body.len().min(TOLD_MAX)]);
                Err(format!("the server responded with {status} where {ACCEPTED} was expected: {told}"))
            }
        }
    }

    /// Sends a request and waits for its response: status and body.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<(u16, &[u8]), String> {
        self.stream.write_all(request).await.map_err(|error| format!("a request was not sent: {error}"))?;
        self.buffer.clear();
        let mut head = None;
        loop {
            if head.is_none() {
                head = Head::read(&self.buffer)?;
            }
            match &head {
                Some(head) if self.buffer.len() >= head.whole => {
                    return Ok((head.status, &self.buffer[head.len..head.whole]));
                }
                Some(head) => self.buffer.reserve(head.whole - self.buffer.len()),
                None => {}
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| format!("a response cannot be read: {error}"))? == 0 {
                return Err("the server closed a connection before it responded".into());
            }
        }
    }
}

/// Formats a request as it is sent.
pub(crate) fn request(addr: SocketAddr, method: &str, path: &str, body: &str) -> Vec<u8> {
    with_headers(addr, method, path, "", body)
}

/// Formats a request with more headers, each with its line end.
pub(crate) fn with_headers(addr: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {addr}\r\n{headers}content-type: application/json\r\n\
         content-length: {len}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Bytes of the head.
    len: usize,
    /// Bytes of the whole response.
    whole: usize,
}

impl Head {
    /// Parses the head; `None` until it is complete.
    fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "the head of a response is not text")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or("a response does not begin with a status")?;
        let len = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        match len {
            Some(body) if body <= ANSWER_LEN_MAX => {
                Ok(Some(Self { status, len: end + 4, whole: end + 4 + body }))
            }
            Some(body) => Err(format!("a response has {body} bytes; at most {ANSWER_LEN_MAX} are read")),
            None => Err("a response has no length".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn the_length_is_known_once_the_head_is_whole() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        let len = whole.len() - 5;
        let head = Head { status: 202, len, whole: whole.len() };
        assert_eq!(Head::read(&whole[..len - 1]), Ok(None));
        assert_eq!(Head::read(&whole[..len]).as_ref(), Ok(&Some(head)));
    }

    #[test]
    fn answers_without_a_status_or_a_length_are_errors() {
        assert!(Head::read(b"nonsense\r\n\r\n").is_err());
        assert!(Head::read(b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(Head::read(b"HTTP/1.1 202 Accepted\r\ncontent-length: 99999999999\r\n\r\n").is_err());
    }
}
