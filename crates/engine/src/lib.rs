//! The engine: the owner of a partition, and take, carry, settle.
