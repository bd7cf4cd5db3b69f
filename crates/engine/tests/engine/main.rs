//! The engine from the outside: real owner, real memory log, virtual time, a scripted upstream.

mod bad_days;
mod people;
mod seen;
mod settled;
mod world;
