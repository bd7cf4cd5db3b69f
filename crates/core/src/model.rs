//! The model of a partition.
/// A partition.
#[derive(Debug, Default)]
pub struct Model;
