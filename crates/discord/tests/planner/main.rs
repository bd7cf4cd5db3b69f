//! The planner against a small guild that does what Discord does with the requests: what it plans, it finds done.

mod adoption;
mod chance;
mod drift;
mod golden;
mod invariants;
mod leftovers;
mod world;
