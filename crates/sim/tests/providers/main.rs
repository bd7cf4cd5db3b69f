//! The simulated image providers over loopback, with an ordinary client and a receiver of webhooks.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on stops")]

mod rig;

mod jobs;
mod limits;
mod shapes;
mod webhooks;
