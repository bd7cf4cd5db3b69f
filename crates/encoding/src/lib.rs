//! What the bytes of a body stand for. Content codings of HTTP (gzip, deflate, br and zstd): which of
//! them a client accepts, and bodies read and written in them, within a bound, because a few bytes
//! may stand for gigabytes. And JSON by its value, however it is written.

pub mod accept;
pub mod body;
pub mod coding;
pub mod json;

pub use accept::AcceptEncoding;
pub use body::{DecodeError, decode, decoder, encode};
pub use coding::{Coding, Codings};
