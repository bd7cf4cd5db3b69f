//! The embedded backend: one SQLite file, or plain memory.
