//! The suites that every store must pass, as a library: a backend's tests call [`store_suites!`] and get one test for
//! each. Also a clock moved by hand, seeded chance, and a store that fails on purpose. Nothing here knows a backend.

pub mod clock;
pub mod dice;
pub mod faulty;
pub mod harness;
pub mod journal;
pub mod log;
pub mod nodes;
pub mod replay;
pub mod samples;
pub mod shared;
mod suites;
pub mod upkeep;

pub use clock::HandClock;
pub use dice::Dice;
pub use faulty::{Faulty, Injected, Injury, Odds, Plan, Verb};
pub use harness::{Backend, Must};
