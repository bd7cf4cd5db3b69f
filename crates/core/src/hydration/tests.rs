//! Tests of the decisions: by example, and by random walks against what must always hold.

mod answers;
mod bounds;
mod copies;
mod flights;
mod modes;
mod random;
mod world;
