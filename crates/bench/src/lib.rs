//! Benchmarks, each beside the ceiling or the peer it is compared with.
