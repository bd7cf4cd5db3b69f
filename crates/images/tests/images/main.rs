//! The adapters over documented responses, signatures of other implementations, random input, and
//! the simulated providers on loopback.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on stops")]

mod client;
mod documented;
mod properties;
mod requests;
mod responses;
mod signatures;
mod simulator;
mod webhooks;
