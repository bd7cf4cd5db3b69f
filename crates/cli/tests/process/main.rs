//! The server as a process of its own, beside simulators that count what it does to them: killed,
//! kept busy, and listened to.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong in a test ends it"
)]

mod arrivals;
mod bots;
mod browser;
mod buried;
mod caller;
mod child;
mod clients;
mod clocks;
mod cluster;
mod damage;
mod deploy;
mod deployed;
mod described;
mod door;
mod generations;
mod kill;
mod languages;
mod learned;
mod logs;
mod orders;
mod pace;
mod private;
mod proxy;
mod repeated;
mod runbook;
mod sdk;
mod storm;
mod streams;
mod transcript;
mod webhooks;
mod why;
mod workers;

/// One test at a time: they share two or more cores with the server they look at, and some of them
/// look at its pace.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
