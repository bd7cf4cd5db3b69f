//! What makes a request the same request: method, path, query, content type and coding, and its body, byte for byte. Each part
//! is preceded by its length, so that none can pass for a piece of its neighbour. What differs from one try to the next by
//! nature (dates, trace and request ids) is not in it.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use sha2::{Digest, Sha256};

/// A fingerprint in the making.
pub(crate) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(crate) fn of(parts: &Parts) -> Self {
        let mut hash = Sha256::new();
        part(&mut hash, Some(parts.method.as_str().as_bytes()));
        part(&mut hash, Some(parts.uri.path().as_bytes()));
        part(&mut hash, parts.uri.query().map(str::as_bytes));
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            part(&mut hash, parts.headers.get(name).map(http::HeaderValue::as_bytes));
        }
        Self(hash)
    }

    /// Adds the next piece of the body, which is last and needs no length.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(crate) fn done(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// A part that is there, with its length; one that is not is told from one that is empty.
fn part(hash: &mut Sha256, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            hash.update([1]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        None => hash.update([0]),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn print(method: &str, uri: &str, kind: Option<&str>, body: &[&[u8]]) -> [u8; 32] {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let mut fingerprint = Fingerprint::of(&request.body(()).unwrap().into_parts().0);
        for piece in body {
            fingerprint.add(piece);
        }
        fingerprint.done()
    }

    /// IDM-20: every part counts, and none can be taken for a piece of another.
    #[test]
    fn every_part_of_a_request_counts() {
        let base = print("POST", "/a?q=1", Some("text/plain"), &[b"body"]);
        let others = [
            print("PUT", "/a?q=1", Some("text/plain"), &[b"body"]),
            print("POST", "/b?q=1", Some("text/plain"), &[b"body"]),
            print("POST", "/a?q=2", Some("text/plain"), &[b"body"]),
            print("POST", "/a", Some("text/plain"), &[b"body"]),
            print("POST", "/a?", Some("text/plain"), &[b"body"]),
            print("POST", "/a?q=1", None, &[b"body"]),
            print("POST", "/a?q=1", Some("text/plainbody"), &[b""]),
            print("POST", "/a?q=1", Some("text/plain"), &[b"body "]),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(base, *other, "variation {index}");
        }
        assert_ne!(others[3], others[4], "an empty query is not the same as none");
    }

    /// The pieces a body came in do not count.
    #[test]
    fn how_a_body_was_cut_does_not_count() {
        let whole = print("POST", "/", None, &[b"{\"sku\":1}"]);
        assert_eq!(whole, print("POST", "/", None, &[b"{", b"\"sku\"", b"", b":1}"]));
    }
}
