//! The fingerprint of a request: method, path, query, content type and coding, and body. Each part
//! is preceded by its length, so that none can pass for a piece of its neighbour. What naturally
//! differs from one attempt to the next (dates, trace and request ids, the spelling of a content
//! type, the boundary of a multipart body) is not part of it.

mod content_type;
mod multipart;

use std::fmt;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use sha2::{Digest, Sha256};
use tidegate_encoding::json::hash_by_value;

use crate::policy::{BodyComparison, PathComparison};
use content_type::ContentType;
use multipart::PartHasher;

/// The bytes of the hash over everything. The bytes that follow tell which part differs, a few for
/// each part.
const WHOLE_LEN: usize = 20;
const PART_LEN: usize = 4;

/// A fingerprint under construction.
pub(crate) struct Fingerprint {
    /// Method and path, which are part of a record's name too.
    route: Sha256,
    query: [u8; 32],
    content_type: [u8; 32],
    body: BodyHash,
}

enum BodyHash {
    Bytes(Sha256),
    Parts(PartHasher),
    /// Buffered whole, because members may come in any order.
    Json(Vec<u8>),
}

/// The parts in which two requests with the same key and route differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Differences {
    query: bool,
    content_type: bool,
    body: bool,
}

impl Fingerprint {
    pub(crate) fn of(parts: &Parts, comparison: BodyComparison, paths: PathComparison) -> Self {
        let header = |name| parts.headers.get(name).map(http::HeaderValue::as_bytes);
        let (kind, coding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
        // A compressed body has no parts or members that can be read at this point.
        let is_readable = coding.is_none();
        let parsed = kind.and_then(|kind| std::str::from_utf8(kind).ok()).map(ContentType::parse);
        let boundary = parsed.as_ref().filter(|_| is_readable).and_then(ContentType::boundary);
        let may_be_json =
            is_readable && (kind.is_none() || parsed.as_ref().is_some_and(ContentType::is_json));
        let body = match boundary {
            Some(boundary) => BodyHash::Parts(PartHasher::new(boundary)),
            None if comparison == BodyComparison::Json && may_be_json => BodyHash::Json(Vec::new()),
            None => BodyHash::Bytes(Sha256::new()),
        };
        let compared = parsed.map(|parsed| parsed.compared().into_bytes());
        let kind = compared.as_deref().or(kind);
        // `/a?` asks for the same as `/a`.
        let query = parts.uri.query().filter(|query| !query.is_empty());
        Self {
            route: hash(&[
                Some(parts.method.as_str().as_bytes()),
                Some(paths.spelling(parts.uri.path()).as_bytes()),
            ]),
            query: hash(&[query.map(str::as_bytes)]).finalize().into(),
            content_type: hash(&[kind, coding]).finalize().into(),
            body,
        }
    }

    /// Adds the next piece of the body.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        match &mut self.body {
            BodyHash::Bytes(hash) => hash.update(piece),
            BodyHash::Parts(parts) => parts.update(piece),
            BodyHash::Json(text) => text.extend_from_slice(piece),
        }
    }

    pub(crate) fn done(self) -> [u8; 32] {
        let body: [u8; 32] = match self.body {
            BodyHash::Bytes(hash) => hash.finalize().into(),
            BodyHash::Parts(parts) => parts.finish(),
            BodyHash::Json(text) => hash_by_value(&text).unwrap_or_else(|| Sha256::digest(&text).into()),
        };
        let parts = [self.query, self.content_type, body];
        let whole = parts.iter().fold(self.route, Digest::chain_update).finalize();
        let mut print = [0; 32];
        print[..WHOLE_LEN].copy_from_slice(&whole[..WHOLE_LEN]);
        for (place, part) in print[WHOLE_LEN..].chunks_mut(PART_LEN).zip(parts) {
            place.copy_from_slice(&part[..PART_LEN]);
        }
        print
    }
}

impl Differences {
    /// No known differences.
    pub(crate) const NONE: Self = Self { query: false, content_type: false, body: false };

    pub(crate) fn between(one: &[u8; 32], other: &[u8; 32]) -> Self {
        let mut parts = one[WHOLE_LEN..].chunks(PART_LEN).zip(other[WHOLE_LEN..].chunks(PART_LEN));
        let mut differs = || parts.next().is_some_and(|(one, other)| one != other);
        Self { query: differs(), content_type: differs(), body: differs() }
    }

    /// Whether the bodies are the same and something else is known to differ.
    pub(crate) fn has_same_body(self) -> bool {
        !self.body && !self.is_empty()
    }

    /// Returns whether no differences are known.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.query, "query"), (self.content_type, "content type"), (self.body, "body")];
        let named: Vec<_> = parts.iter().filter(|(differs, _)| *differs).map(|(_, name)| *name).collect();
        out.write_str(&named.join(", "))
    }
}

/// Hashes parts, each with its length; an absent part differs from an empty one.
fn hash(parts: &[Option<&[u8]>]) -> Sha256 {
    let mut hash = Sha256::new();
    for part in parts {
        match part {
            Some(bytes) => {
                hash.update([1]);
                hash.update((bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            }
            None => hash.update([0]),
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn print(method: &str, uri: &str, kind: Option<&str>, body: &[&[u8]]) -> [u8; 32] {
        print_as(BodyComparison::Bytes, method, uri, kind, body)
    }

    fn print_as(
        comparison: BodyComparison,
        method: &str,
        uri: &str,
        kind: Option<&str>,
        body: &[&[u8]],
    ) -> [u8; 32] {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut fingerprint = Fingerprint::of(&parts, comparison, PathComparison::Resolved);
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
            assert_ne!(base[..WHOLE_LEN], other[..WHOLE_LEN], "variation {index}");
        }
        assert_eq!(others[3], others[4], "an empty query is the same as none");
    }

    /// IDM-20: a client that writes the same content type in another way repeats its request.
    #[test]
    fn idm_20_the_spelling_of_a_content_type_does_not_count() {
        let of = |kind: &str| print("POST", "/", Some(kind), &[b"{}"]);
        let base = of("application/json");
        for same in ["application/json; charset=utf-8", "Application/Json;charset=\"UTF-8\""] {
            assert_eq!(base, of(same), "{same}");
        }
        for other in ["application/json; charset=utf-16", "application/problem+json", "text/plain"] {
            assert_eq!(Differences::between(&base, &of(other)).to_string(), "content type", "{other}");
        }
    }

    /// The pieces in which a body arrived do not count.
    #[test]
    fn how_a_body_was_cut_does_not_count() {
        let whole = print("POST", "/", None, &[b"{\"sku\":1}"]);
        assert_eq!(whole, print("POST", "/", None, &[b"{", b"\"sku\"", b"", b":1}"]));
    }

    /// IDM-4: the parts that differ are known.
    #[test]
    fn differences_are_named() {
        let base = print("POST", "/a?q=1", Some("text/plain"), &[b"body"]);
        for (uri, kind, body, named) in [
            ("/a?q=1", "text/plain", "body", ""),
            ("/a?q=2", "text/plain", "body", "query"),
            ("/a?q=1", "text/html", "body", "content type"),
            ("/a?q=1", "text/plain", "other", "body"),
            ("/a", "text/html", "other", "query, content type, body"),
        ] {
            let other = print("POST", uri, Some(kind), &[body.as_bytes()]);
            assert_eq!(Differences::between(&base, &other).to_string(), named);
            assert_eq!(base == other, named.is_empty());
        }
    }

    /// IDM-2: JSON is compared by value if that is configured, and only JSON.
    #[test]
    fn json_is_compared_by_value_by_choice() {
        let of = |comparison, kind: &str, body: &str| {
            print_as(comparison, "POST", "/", Some(kind), &[body.as_bytes()])
        };
        let (one, other) = (r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1.0 }"#);
        for kind in ["application/json", "application/vnd.api+json; charset=utf-8"] {
            assert_eq!(of(BodyComparison::Json, kind, one), of(BodyComparison::Json, kind, other));
            assert_ne!(of(BodyComparison::Bytes, kind, one), of(BodyComparison::Bytes, kind, other));
        }
        let bare = |body: &str| print_as(BodyComparison::Json, "POST", "/", None, &[body.as_bytes()]);
        assert_eq!(bare(one), bare(other), "nobody says that it is something else");
        let text = |body: &str| of(BodyComparison::Json, "text/plain", body);
        assert_ne!(text(one), text(other));
        let broken = |body: &str| of(BodyComparison::Json, "application/json", body);
        assert_ne!(broken("{"), broken("{ "), "what is no JSON is compared byte for byte");
    }

    /// IDM-2: a multipart body with another boundary is the same; a compressed one is compared as
    /// bytes.
    #[test]
    fn a_multipart_body_is_compared_by_its_parts() {
        let of = |boundary: &str, file: &str| {
            let kind = format!("multipart/form-data; boundary={boundary}");
            let body = format!("--{boundary}\r\n\r\n{file}\r\n--{boundary}--");
            print("POST", "/", Some(&kind), &[body.as_bytes()])
        };
        assert_eq!(of("one", "x"), of("another", "x"));
        assert_ne!(of("one", "x"), of("one", "y"));
    }
}
