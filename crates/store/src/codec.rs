//! Facts as bytes.
