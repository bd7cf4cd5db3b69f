//! The name of a record in the store: scope, route and key. No part contains a space, so the name
//! can be parsed and no two requests share one by accident. Characters of a key other than letters,
//! digits, `-` and `_` are written as `%` and two hexadecimal digits.

use std::fmt;

use http::request::Parts;
use sha2::{Digest, Sha256};

use crate::key::{IdempotencyKey, is_plain};
use crate::policy::PathComparison;
use crate::scope::CallerScope;

/// The longest path that is stored as it is, in bytes; a longer one is stored as a hash.
const PATH_LEN_MAX: usize = 512;

/// The name under which one key of one caller on one route is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordName {
    /// The caller.
    pub scope: CallerScope,
    /// The method of the request.
    pub method: String,
    /// The path in its common spelling, or `#` and the hash of a long one.
    pub path: String,
    /// The key.
    pub key: IdempotencyKey,
}

impl RecordName {
    pub(crate) fn of(scope: CallerScope, parts: &Parts, paths: PathComparison, key: IdempotencyKey) -> Self {
        let path = paths.spelling(parts.uri.path());
        let path = if path.len() <= PATH_LEN_MAX && !path.contains(' ') {
            path.into_owned()
        } else {
            let hash = Sha256::digest(path.as_bytes());
            hash.iter().fold("#".to_owned(), |text, byte| text + &format!("{byte:02x}"))
        };
        Self { scope, method: parts.method.as_str().to_owned(), path, key }
    }

    /// Builds a name from its parts, as lists show them; `None` where one of them is invalid.
    #[must_use]
    pub fn new(scope: CallerScope, method: &str, path: &str, key: IdempotencyKey) -> Option<Self> {
        let is_part = |part: &str| !part.is_empty() && !part.contains(' ');
        let is_name = is_part(scope.as_str()) && is_part(method) && is_part(path);
        is_name.then(|| Self { scope, method: method.to_owned(), path: path.to_owned(), key })
    }

    /// Parses a stored name; `None` when it is not one of this crate.
    #[must_use]
    pub fn parse(kept: &str) -> Option<Self> {
        let mut parts = kept.split(' ');
        let (scope, method, path) = (parts.next()?, parts.next()?, parts.next()?);
        let key = decode_key(parts.next()?)?;
        let whole = parts.next().is_none();
        Self::new(CallerScope::from_stored(scope)?, method, path, key).filter(|_| whole)
    }
}

fn decode_key(kept: &str) -> Option<IdempotencyKey> {
    let mut text = String::with_capacity(kept.len());
    let mut rest = kept;
    while let Some(first) = rest.bytes().next() {
        let (byte, len) = match first {
            b'%' => (u8::from_str_radix(rest.get(1..3)?, 16).ok()?, 3),
            plain => (Some(plain).filter(|plain| is_plain(*plain))?, 1),
        };
        text.push(char::from(byte));
        rest = rest.get(len..)?;
    }
    IdempotencyKey::printable(&text)
}

impl fmt::Display for RecordName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {} ", self.scope.as_str(), self.method, self.path)?;
        let key = self.key.as_str();
        if key.bytes().all(is_plain) {
            return out.write_str(key);
        }
        key.bytes().try_for_each(|byte| match is_plain(byte) {
            true => write!(out, "{}", char::from(byte)),
            false => write!(out, "%{byte:02x}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn name(uri: &str) -> RecordName {
        name_as(uri, PathComparison::Resolved)
    }

    fn name_as(uri: &str, paths: PathComparison) -> RecordName {
        let (parts, ()) = Request::post(uri).body(()).unwrap().into_parts();
        RecordName::of(CallerScope::named("acme"), &parts, paths, IdempotencyKey::new("k-1").unwrap())
    }

    /// IDM-2: whether `a//b` is `a/b` depends on the service.
    #[test]
    fn idm_2_paths_are_compared_as_the_service_reads_them() {
        for other in ["/v1//items", "/v1/./items", "/v1/x/../items"] {
            assert_eq!(name(other), name("/v1/items"), "{other}");
            let [one, literal] = ["/v1/items", other].map(|uri| name_as(uri, PathComparison::Literal));
            assert_ne!(literal, one, "{other}");
            assert_eq!(RecordName::parse(&literal.to_string()), Some(literal));
        }
        assert_eq!(name_as("/v1/it%65ms", PathComparison::Literal), name("/v1/items"));
    }

    /// IDM-2: the caller and the route are part of a key; the query is compared instead.
    #[test]
    fn a_name_holds_caller_route_and_key() {
        assert_eq!(name("/v1/items?dry=1").to_string(), "acme POST /v1/items k-1");
        assert_ne!(name("/v1/items"), name("/v1/item"));
        let long = format!("/{}", "p".repeat(PATH_LEN_MAX));
        assert!(name(&long).path.starts_with('#') && name(&long).to_string().len() < 100);
        for uri in ["/v1/items", &long] {
            assert_eq!(RecordName::parse(&name(uri).to_string()), Some(name(uri)));
        }
    }

    /// IDM-1: keys with other characters have names of their own, which no plain key has.
    #[test]
    fn a_printable_key_is_found_again_by_its_name() {
        let of = |key: &str| RecordName { key: IdempotencyKey::printable(key).unwrap(), ..name("/x") };
        assert_eq!(of("order:7 %").to_string(), "acme POST /x order%3a7%20%25");
        for key in ["k", "order:7", "a b", "%41", "YWJj+/==", "\"\\"] {
            assert_eq!(RecordName::parse(&of(key).to_string()), Some(of(key)), "{key}");
        }
    }

    #[test]
    fn a_stranger_is_no_name() {
        for stranger in
            ["", "key", "a POST /x", "a POST /x k!", "a POST /x k-1 more", "a POST /x %4", "a POST /x %é"]
        {
            assert_eq!(RecordName::parse(stranger), None, "{stranger:?}");
        }
    }
}
