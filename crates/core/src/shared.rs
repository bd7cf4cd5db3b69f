//! The decisions on shared records, as pure functions from the current state to the next state and
//! a result. A backend does each as one atomic step; the contract suite compares backends with
//! these functions.

pub mod bucket;
pub mod lease;
pub mod record;
pub mod window;
