//! Tests of the suites themselves: a correct store or bus passes them, and for each there is a
//! broken one that does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod broken_bus;
mod faulty;
mod memory;
mod seeds;
