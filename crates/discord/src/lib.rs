//! Discord's dialect. Here is the half that only thinks: a guild's template, managed names, the live guild as it is
//! listed, and the plan that leads from one to the other. It makes no call, keeps nothing and has no clock.

pub mod bounds;
pub mod guild;
mod id;
pub mod journal;
mod key;
pub mod name;
pub mod permission;
pub mod plan;
pub mod template;

pub use id::Id;
pub use key::{Key, Kind};
