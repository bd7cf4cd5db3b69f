//! Discord's dialect. One half only thinks: a guild's template, managed names, the live guild as it is listed, and the plan
//! that leads from one to the other. The deployer carries a plan through the queue and keeps the journal.

pub mod bounds;
pub mod deploy;
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
