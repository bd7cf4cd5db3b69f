//! The planner against a small fake guild that handles its requests as Discord does: what it plans,
//! it finds done.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong in a test ends it")]

mod adoption;
mod clean;
mod drift;
mod fake_discord;
mod generator;
mod golden;
mod invariants;
mod kinds;
mod leftovers;
mod preflight;
