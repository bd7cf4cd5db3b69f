//! The Discord simulator over loopback, with an ordinary client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod channels;
mod control;
mod faults;
mod limits;
mod messages;
mod rig;
mod roles;
