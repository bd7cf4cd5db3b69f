//! The headers a caller may set. Credentials, the host and whatever steers the connection are not the caller's.

use reqwest::header::{HeaderName, HeaderValue};

/// Most headers on one request.
pub const HEADERS_MAX: usize = 64;
/// Longest name, in bytes.
pub const NAME_LEN_MAX: usize = 256;
/// Longest value, in bytes.
pub const VALUE_LEN_MAX: usize = 8 * 1024;
/// The header that tells an upstream which operation a call belongs to.
pub const OPERATION: &str = "tidegate-operation";

const CREDENTIALS: [&str; 12] = [
    "authorization",
    "cookie",
    "cookie2",
    "api-key",
    "apikey",
    "x-api-key",
    "x-apikey",
    "x-auth-token",
    "x-access-token",
    "x-shopify-access-token",
    "x-goog-api-key",
    "private-token",
];

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

/// Says what is wrong with the headers, if anything is. Values are never repeated in the sentence.
///
/// # Errors
/// A sentence.
pub fn validate(headers: &[(String, String)]) -> Result<(), String> {
    if headers.len() > HEADERS_MAX {
        return Err(format!("There are {} headers; the most is {HEADERS_MAX}.", headers.len()));
    }
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
        refused(&lower)?;
        if headers[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(format!("The header {lower} is there twice; put its values into one."));
        }
    }
    Ok(())
}

/// Why a header of this name, in lower case, is not the caller's to set.
fn refused(name: &str) -> Result<(), String> {
    if CREDENTIALS.contains(&name) || name.ends_with("-api-key") {
        return Err(format!(
            "The header {name} is a credential, which would be stored with the request; put it into the upstream's token_env."
        ));
    }
    if CONNECTION.contains(&name) || name.starts_with("proxy-") {
        return Err(format!("The header {name} belongs to the connection and is set by Tidegate."));
    }
    Ok(())
}

/// Headers as a JSON object of names and values, in order.
pub(crate) mod as_map {
    use std::fmt;

    use serde::de::{MapAccess, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(headers: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(headers.iter().map(|(name, value)| (name, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
        from.deserialize_map(Pairs)
    }

    struct Pairs;

    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("headers as an object of names and strings")
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
        for name in ["accept", "Content-Type", "idempotency-key", "x-request-id", "if-match", "x-api-version"]
        {
            assert_eq!(check(name, "v"), Ok(()), "{name}");
        }
    }

    /// OPS-22: credentials stay out of what is stored, and the refusal does not repeat them.
    #[test]
    fn ops_22_credentials_are_refused_without_being_repeated() {
        for name in ["Authorization", "cookie", "X-Api-Key", "acme-api-key", "X-Shopify-Access-Token"] {
            let message = check(name, "hunter2").unwrap_err();
            assert!(message.contains("token_env") && !message.contains("hunter2"), "{message}");
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
        assert!(validate(&many).unwrap_err().contains("the most is 64"));
    }
}
