//! The bus port: messages to whoever subscribes now, each delivered at most once. A bus keeps
//! nothing, so it reports what it lost (`BusEvent::Gap`) and whether anyone was there to receive
//! (`Delivery`). Subjects are built from tokens that no id can break. Also a bus within one
//! process. Nothing in this crate knows what a message means.

mod error;
mod filter;
mod in_process;
mod port;
mod queue;
mod subject;
mod token;

pub use error::{BusError, BusErrorKind};
pub use filter::{FilterToken, SubjectFilter};
pub use in_process::InProcessBus;
pub use port::{Bus, BusEvent, BusFuture, BusMessage, Delivery, check_payload};
pub use queue::{BusSubscription, SubscriptionSender};
pub use subject::Subject;
