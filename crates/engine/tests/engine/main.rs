//! The engine from the outside: real owner, real memory log, virtual time, a scripted upstream.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
mod awaiting;
mod backlog;
mod bad_days;
mod busy;
mod command_errors;
mod costs;
mod damage;
mod in_flight;
mod opened;
mod outage;
mod overtaken;
mod people;
mod remote;
mod scripted_upstream;
mod seen;
mod settled;
