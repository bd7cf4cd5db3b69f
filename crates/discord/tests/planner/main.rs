//! The planner against a small guild that does what Discord does with the requests: what it plans, it finds done.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong in a test ends it")]

mod adoption;
mod chance;
mod drift;
mod golden;
mod invariants;
mod leftovers;
mod world;
