//! The pages in a real Chromium, in front of a real server with simulated upstreams.

mod generations;
mod operator;
mod session;
mod slots;
mod studio;
