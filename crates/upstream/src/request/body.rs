//! The body of a request: empty, JSON exactly as the caller wrote it, text as it is, or bytes that
//! arrived in another way.

use std::fmt;

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The body of a request.
#[derive(Clone, Default)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// JSON, byte for byte as it came: no number is rounded and no key is moved.
    Json(Box<RawValue>),
    /// Text, sent as it is.
    Text(String),
    /// Arbitrary bytes without a content type. JSON cannot represent them, so they are stored
    /// separately.
    Bytes(Bytes),
}

impl Body {
    /// Whether the body is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Converts the body to the bytes to send.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Json(json) => Bytes::from(Box::<str>::from(json).into_string()),
            Self::Text(text) => Bytes::from(text),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The default content type.
    #[must_use]
    pub const fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::Bytes(_) => None,
            Self::Json(_) => Some("application/json"),
            Self::Text(_) => Some("text/plain; charset=utf-8"),
        }
    }
}

/// JSON, sent as the value prints.
impl From<serde_json::Value> for Body {
    fn from(json: serde_json::Value) -> Self {
        RawValue::from_string(json.to_string()).map_or(Self::Empty, Self::Json)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl fmt::Debug for Body {
    /// Shows the kind and the length, never the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Json(json) => write!(f, "Json({} bytes)", json.get().len()),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
        }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty | Self::Bytes(_) => to.serialize_unit(),
            Self::Json(json) => json.serialize(to),
            Self::Text(text) => to.serialize_str(text),
        }
    }
}

/// What is wrong with a text that is valid JSON and cannot be sent.
pub(super) const NOT_UNICODE: &str = "the body holds half of a surrogate pair, which is no Unicode text,";

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(from)?;
        match json.get().as_bytes().first() {
            Some(b'n') => Ok(Self::Empty),
            Some(b'"') => {
                // The JSON around it was read: only an escape can be wrong.
                serde_json::from_str(json.get()).map(Self::Text).map_err(|_| D::Error::custom(NOT_UNICODE))
            }
            _ => Ok(Self::Json(json)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_nothing_a_string_is_text_and_the_rest_is_json() {
        let read = |json: &str| serde_json::from_str::<Body>(json).unwrap();
        assert!(read(" null ").is_empty());
        assert_eq!(&read(r#""a=1\u0026b""#).into_bytes()[..], b"a=1&b");
        for json in [r#"{"b": 1, "a": 1e400}"#, "[]", "0.10", "true", "false"] {
            let body = read(json);
            assert_eq!(body.content_type(), Some("application/json"));
            assert_eq!(body.into_bytes(), json);
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_named() {
        let payload = br#"{"upstream":"u","request":{"method":"POST","path":"/","body":"\ud800"}}"#;
        let refused = crate::request::Envelope::decode(payload).unwrap_err();
        assert!(refused.message.contains("half of a surrogate pair"), "{}", refused.message);
    }
}
