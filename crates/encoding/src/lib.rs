//! Interprets the bytes of a body. Content codings of HTTP (gzip, deflate, br and zstd): which of
//! them a client accepts, and reading and writing bodies in them, within a bound, because a few
//! bytes may expand to gigabytes. And JSON compared by value, however it is written.
//!
//! ```
//! use tidegate_encoding::json::hash_by_value;
//!
//! assert_eq!(hash_by_value(br#"{"a": 1, "b": 2}"#), hash_by_value(br#"{"b":2.0,"a":1}"#));
//! ```

pub mod accept;
pub mod body;
pub mod coding;
pub mod json;

pub use accept::AcceptEncoding;
pub use body::{DecodeError, decode, decoder, encode};
pub use coding::{Coding, Codings};
