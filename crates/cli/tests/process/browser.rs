//! The page in a real Chromium, in front of a real server with simulated providers.

mod generations;
mod session;
mod studio;
