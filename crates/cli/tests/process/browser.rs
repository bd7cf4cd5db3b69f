//! The pages in a real Chromium, in front of a real server with simulated upstreams.

pub(crate) mod axe;
mod decisions;
pub(crate) mod every_action;
pub(crate) mod exhibit;
mod generations;
mod gone;
mod needs;
pub(crate) mod operator;
mod pictures;
pub(crate) mod session;
mod shift;
mod slots;
pub(crate) mod studio;
mod views;
