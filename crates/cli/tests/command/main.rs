//! The command itself, run as a process: against a server in this process, and as the server.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod costs;
mod flights;
mod generations;
mod keys;
mod long;
mod operate;
mod support;
mod tokens;
mod wrong;
