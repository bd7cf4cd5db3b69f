//! The API over real loopback HTTP, against a server in this process with an in-memory store and a
//! simulated upstream.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong in a test ends it"
)]

mod actions;
mod audit;
mod auth;
mod bulk;
mod bulk_commands;
mod complete;
mod costs;
mod deployments;
mod details;
mod edge;
mod entities;
mod events;
mod figures;
mod flights;
mod foreign;
mod generations;
mod idempotent;
mod keys;
mod login;
mod look;
mod names;
mod openapi;
mod operator_pages;
mod orders;
mod outbox;
mod page;
mod pass;
mod problems;
mod scopes;
mod shared;
mod stop;
mod submit;
mod support;
mod throttled;
mod tls;
mod tokens;
mod traces;
mod work;
