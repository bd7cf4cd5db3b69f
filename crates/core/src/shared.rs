//! The decisions on shared records, as pure functions from the state that is there to the state that follows and
//! an answer. A backend does each as one atomic step; the contract suite compares them with these.

pub mod bucket;
pub mod lease;
pub mod record;
pub mod window;
