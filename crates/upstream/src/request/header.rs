//! The headers that a caller may set. Credentials, the host and connection headers are reserved.

use http::header::{HeaderName, HeaderValue};
use tidegate_core::header_storage::{StorageRefusal, check_storable};

/// Most headers on one request.
const HEADERS_MAX: usize = 128;
/// Longest name, in bytes.
const NAME_LEN_MAX: usize = 256;
/// Longest value, in bytes.
const VALUE_LEN_MAX: usize = 8 * 1024;
/// The header that identifies to an upstream the operation a call belongs to.
pub const OPERATION: &str = "tidegate-operation";

/// The header that carries the key by which a receiver recognizes a repeated request.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Credentials by the rules of HTTP itself.
pub(super) const NEVER_STORED: [&str; 3] = ["authorization", "cookie", "cookie2"];

const CONNECTION: [&str; 11] = [
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "content-length",
    "expect",
    OPERATION,
];

/// Validates headers. The message never repeats a value.
///
/// # Errors
/// A message that describes the first problem.
pub fn validate(headers: &[(String, String)]) -> Result<(), String> {
    validate_form(headers)?;
    refuse_credentials(headers, &[])
}

/// Validates the number of headers.
///
/// # Errors
/// A message with the bound.
pub fn validate_count(count: usize) -> Result<(), String> {
    if count > HEADERS_MAX {
        return Err(format!("There are {count} headers; the most is {HEADERS_MAX}."));
    }
    Ok(())
}

/// Validates headers, whether or not they carry credentials.
pub(crate) fn validate_form(headers: &[(String, String)]) -> Result<(), String> {
    validate_count(headers.len())?;
    for (index, (name, value)) in headers.iter().enumerate() {
        if name.is_empty() || name.len() > NAME_LEN_MAX || HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(format!("Header {} has a name that HTTP does not allow.", index + 1));
        }
        let lower = name.to_ascii_lowercase();
        if value.len() > VALUE_LEN_MAX {
            let len = value.len();
            return Err(format!("The header {lower} is {len} bytes long; the most is {VALUE_LEN_MAX}."));
        }
        if HeaderValue::from_str(value).is_err() {
            return Err(format!("The header {lower} has a value that HTTP does not allow."));
        }
        refuse_connection(&lower)?;
        if headers[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(format!("The header {lower} occurs twice; combine its values."));
        }
    }
    Ok(())
}

/// Validates one header, as far as that does not depend on its upstream.
///
/// # Errors
/// A message that describes the problem.
pub fn validate_one(name: &str, value: &str) -> Result<(), String> {
    let header = [(name.to_owned(), value.to_owned())];
    validate_form(&header)?;
    let is_never_stored = NEVER_STORED.contains(&name.to_ascii_lowercase().as_str());
    if is_never_stored { refuse_credentials(&header, &[]) } else { Ok(()) }
}

/// Refuses connection headers.
fn refuse_connection(name: &str) -> Result<(), String> {
    if CONNECTION.contains(&name) || name.starts_with("proxy-") {
        return Err(format!("The header {name} belongs to the connection and is set by Tidegate."));
    }
    Ok(())
}

/// Refuses headers that carry a credential, because headers are stored with the request in clear
/// text. `stored` lists names, in lower case, that may be stored all the same.
pub(crate) fn refuse_credentials(headers: &[(String, String)], stored: &[String]) -> Result<(), String> {
    let mut refused = Vec::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if stored.contains(&name) {
            continue;
        }
        let problem = match check_storable(&name, value.as_bytes()) {
            Ok(()) => continue,
            Err(StorageRefusal::Name) => "is a credential by its name",
            Err(StorageRefusal::Value) => "is a credential by its value",
            Err(StorageRefusal::Unknown) => "is not known, its value may be a secret",
        };
        let advice = "put it into the upstream's token_env and token_header";
        refused.push(if NEVER_STORED.contains(&name.as_str()) {
            format!("The header {name} is a credential, which is never stored with a request; {advice}.")
        } else {
            format!(
                "The header {name} {problem}, and would be stored with the request in clear; \
                 {advice}, or name it in stored_headers if it holds no secret."
            )
        });
    }
    if refused.is_empty() { Ok(()) } else { Err(refused.join(" ")) }
}

/// Whether an operator may allow a header of this name, in lower case, to be stored.
pub(crate) fn may_be_stored(name: &str) -> bool {
    let is_short = name.len() <= NAME_LEN_MAX;
    let is_name = HeaderName::from_bytes(name.as_bytes()).is_ok_and(|parsed| parsed.as_str() == name);
    is_short && is_name && !NEVER_STORED.contains(&name) && refuse_connection(name).is_ok()
}

/// Serializes headers as a JSON object of names and values, in order.
pub(crate) mod as_map {
    use std::fmt;

    use serde::de::{MapAccess, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(headers: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(headers.iter().map(|(name, value)| (name, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
        // Null stands for no headers.
        from.deserialize_any(Pairs)
    }

    struct Pairs;

    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("headers as an object of names and strings")
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut headers = Vec::new();
            while let Some(pair) = map.next_entry()? {
                headers.push(pair);
            }
            Ok(headers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<(), String> {
        validate(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn usual_headers_pass() {
        for name in [
            "accept",
            "Content-Type",
            "idempotency-key",
            "x-request-id",
            "if-match",
            "x-api-version",
            "x-group",
            "x-partition-key",
            "x-hub-signature-256",
        ] {
            assert_eq!(check(name, "v"), Ok(()), "{name}");
        }
    }

    /// OPS-22: credentials are never stored, and the refusal does not repeat them.
    #[test]
    fn ops_22_credentials_are_refused_without_being_repeated() {
        for name in [
            "Authorization",
            "cookie",
            "X-Api-Key",
            "acme-api-key",
            "X-Shopify-Access-Token",
            "X-Vault-Token",
            "x-rapidapi-key",
            "x-session-id",
        ] {
            let message = check(name, "hunter2").unwrap_err();
            assert!(message.contains("token_env") && !message.contains("hunter2"), "{message}");
            assert!(message.contains(&name.to_ascii_lowercase()), "{message}");
        }
        let stored = |name| check(name, "v").unwrap_err().contains("stored_headers");
        assert!(stored("x-api-key"));
        assert!(!stored("authorization") && !stored("cookie"), "stored_headers takes none of them");
        let message = check("x-custom", "8f3aC1d2E4b5a697882746152433").unwrap_err();
        assert!(message.contains("may be a secret") && message.contains("stored_headers"), "{message}");
        assert!(!message.contains("8f3a"), "{message}");
        for value in ["Bearer hunter2", "Basic aHVudGVyMg==", "eyJhbGciOiJub25lIn0.eyJwIjoiaHVudGVyMiJ9."] {
            let message = check("x-custom", value).unwrap_err();
            assert!(message.contains("x-custom") && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn what_steers_the_connection_is_refused() {
        for name in [
            "Host",
            "proxy-authorization",
            "proxy-x",
            "Connection",
            "content-length",
            "Transfer-Encoding",
            "TE",
            OPERATION,
        ] {
            assert!(check(name, "v").is_err(), "{name}");
        }
        for (name, value) in
            [("", "v"), ("a b", "v"), ("a:", "v"), ("ä", "v"), ("a", "v\r\nb: c"), ("a", "\0")]
        {
            assert!(check(name, value).is_err(), "{name}");
        }
        assert!(check(&"x".repeat(NAME_LEN_MAX + 1), "v").is_err());
        assert!(check("x", &"v".repeat(VALUE_LEN_MAX + 1)).is_err());
        let many: Vec<_> = (0..=HEADERS_MAX).map(|n| (format!("x-{n}"), String::new())).collect();
        assert!(validate(&many).unwrap_err().contains("the most is 128"));
    }
}
