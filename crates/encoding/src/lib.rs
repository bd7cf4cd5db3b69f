//! Content codings of HTTP: gzip, deflate, br and zstd. Says which of them a client accepts, and reads and writes bodies
//! in them. Whoever reads sets a bound, because a few bytes may stand for gigabytes.

pub mod accept;
pub mod body;
pub mod coding;

pub use accept::AcceptEncoding;
pub use body::{DecodeError, decode, decoder, encode};
pub use coding::{Coding, Codings};
