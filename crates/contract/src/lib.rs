//! The suites that every store must pass, and the faulty wrappers they are tried with.
