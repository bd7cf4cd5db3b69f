//! Dispatch from the outside: a real engine on a memory store, the simulated providers over
//! loopback, and a receiver of their webhooks.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod attempt_ids;
mod chain;
mod lifecycle;
mod models;
mod queue;
mod results;
mod strategies;
mod unknown;
mod webhooks;
mod world;
