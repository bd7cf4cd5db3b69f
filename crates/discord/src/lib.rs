//! Everything specific to Discord: its limits and refusals (the dialect), a guild's template,
//! managed names, the live guild as Discord lists it, and the plan that leads from one to the
//! other. All of these are pure computation. The deployer executes a plan through the queue and
//! keeps the journal.

pub mod bounds;
pub mod deploy;
pub mod dialect;
pub mod guild;
mod id;
pub mod journal;
mod key;
pub mod name;
pub mod permission;
pub mod plan;
pub mod template;

pub use dialect::{DiscordDialect, DiscordSettings};
pub use id::Id;
pub use key::{ObjectKey, ObjectKind};
