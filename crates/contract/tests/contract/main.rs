//! Tests of the suites themselves: a correct store passes them, and for each there is a broken
//! store that does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod faulty;
mod memory;
