//! The suites that every store and every bus must pass, as a library: a backend's tests call
//! [`store_suites!`] or [`bus_suites!`] and get one test for each. Also a manual clock, seeded
//! randomness, and a store with fault injection. Nothing here knows a backend.

pub mod audit;
pub mod bus;
pub mod clock;
pub mod faulty;
pub mod harness;
pub mod journal;
pub mod log;
pub mod nodes;
pub mod replay;
pub mod rng;
pub mod samples;
pub mod shared;
mod suites;
pub mod upkeep;

pub use clock::ManualClock;
pub use faulty::{FaultCounts, FaultPlan, FaultRates, FaultyStore, InjectedFault, StoreMethod};
pub use harness::{Backend, ExpectValue};
pub use rng::TestRng;
