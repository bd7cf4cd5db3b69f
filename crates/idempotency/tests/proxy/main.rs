//! The proxy between real sockets: what passes, what does not, and what is known of a request
//! without a response.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod faults;
mod frames;
mod kept;
mod passing;
mod rounds;
mod service;
mod streams;
mod upgrade;
mod world;
