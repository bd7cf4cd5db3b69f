//! The deployer with a real engine and real stores, against the simulator.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod audit;
mod crash;
mod faults;
mod foreign;
mod hand;
mod plain;
mod random;
mod refused;
mod scarce;
mod strange;
mod timed;
mod together;
mod world;
