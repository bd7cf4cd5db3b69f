//! Which headers may be stored: none that is a credential by its name or its value, and of the
//! others those with a known name, or with a value in which no secret can be. Everything that is
//! stored uses this one rule: no other header is written to a store in clear text.

use crate::credential::{is_credential_name, is_credential_value};

/// Headers whose values may be long and random without being a secret.
const KNOWN_HEADERS: [&str; 34] = [
    "accept",
    "age",
    "allow",
    "b3",
    "baggage",
    "cache-control",
    "date",
    "etag",
    "expires",
    "forwarded",
    "from",
    "last-modified",
    "link",
    "location",
    "nel",
    "origin",
    "pragma",
    "prefer",
    "priority",
    "range",
    "referer",
    "referrer-policy",
    "refresh",
    "retry-after",
    "server",
    "sourcemap",
    "traceparent",
    "tracestate",
    "user-agent",
    "vary",
    "via",
    "want-digest",
    "warning",
    "www-authenticate",
];

/// How the names of such headers begin.
const KNOWN_PREFIXES: [&str; 11] = [
    "accept-",
    "access-control-",
    "content-",
    "cross-origin-",
    "if-",
    "ratelimit",
    "report",
    "sec-",
    "strict-transport-",
    "x-forwarded-",
    "x-ratelimit-",
];

/// Words in the names of such headers: they say which of several things is meant, or prove that a
/// body is whole. A key that is no credential is one of them.
const KNOWN_WORDS: [&str; 40] = [
    "build",
    "checksum",
    "client",
    "commit",
    "correlation",
    "cursor",
    "delivery",
    "deployment",
    "deprecated",
    "digest",
    "etag",
    "hash",
    "hmac",
    "id",
    "ids",
    "key",
    "keys",
    "md5",
    "name",
    "next",
    "organization",
    "page",
    "parentspanid",
    "project",
    "query",
    "reason",
    "ref",
    "reference",
    "request",
    "revision",
    "sha",
    "sha1",
    "sha256",
    "signature",
    "span",
    "spanid",
    "trace",
    "traceid",
    "url",
    "version",
];

/// The shortest run of letters and digits that may be a secret. The parts of a UUID, a date or a
/// version are shorter.
const SECRET_LEN_MIN: usize = 20;

/// Why a header may not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageRefusal {
    /// Its name is that of a credential.
    Name,
    /// Its value is a credential.
    Value,
    /// Its name is not known, and its value may be a secret.
    Unknown,
}

/// Decides whether a header may be stored.
///
/// # Errors
/// Why it may not.
pub fn check_storable(name: &str, value: &[u8]) -> Result<(), StorageRefusal> {
    if is_credential_name(name) {
        Err(StorageRefusal::Name)
    } else if is_credential_value(value) {
        Err(StorageRefusal::Value)
    } else if !is_known_name(name) && may_hold_secret(value) {
        Err(StorageRefusal::Unknown)
    } else {
        Ok(())
    }
}

/// Whether a header is known to hold no secret. Its name is not that of a credential.
fn is_known_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    KNOWN_HEADERS.contains(&lower.as_str())
        || KNOWN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || lower.split(['-', '_', '.']).any(|word| KNOWN_WORDS.contains(&word))
}

/// Whether a value has a long run of letters and digits, of both.
fn may_hold_secret(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).any(|run| {
        run.len() >= SECRET_LEN_MIN
            && run.iter().any(u8::is_ascii_digit)
            && run.iter().any(u8::is_ascii_alphabetic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: under a name that is not known, a value that may be a secret is not stored.
    #[test]
    fn ops_22_only_known_headers_have_random_values() {
        let random = "8f3aC1d2E4b5a697882746152433";
        for name in ["x-pass", "x-ticket", "acme-grant", "x-access-code"] {
            assert_eq!(check_storable(name, random.as_bytes()), Err(StorageRefusal::Unknown), "{name}");
            for plain in ["7", "true", "acme", "de-DE", "2026-11-17T04:40:00.123Z", "a sentence of words"] {
                assert_eq!(check_storable(name, plain.as_bytes()), Ok(()), "{name}: {plain}");
            }
            let uuid = "550e8400-e29b-41d4-a716-446655440000";
            assert_eq!(check_storable(name, uuid.as_bytes()), Ok(()), "{name}");
        }
        for name in [
            "if-none-match",
            "content-md5",
            "Idempotency-Key",
            "x-request-id",
            "x-b3-traceid",
            "sentry-trace",
            "stripe-signature",
            "x-hub-signature-256",
            "openai-organization",
            "user-agent",
            "x-amz-content-sha256",
        ] {
            assert_eq!(check_storable(name, random.as_bytes()), Ok(()), "{name}");
        }
        assert_eq!(check_storable("x-vault-token", b"a"), Err(StorageRefusal::Name));
        assert_eq!(check_storable("x-request-id", b"Bearer a"), Err(StorageRefusal::Value));
    }
}
