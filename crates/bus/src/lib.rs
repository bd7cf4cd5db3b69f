//! The bus port: messages to whoever subscribes now, each delivered at most once. A bus keeps
//! nothing, so it reports what it lost (`BusEvent::Gap`) and whether anyone was there to receive
//! (`Delivery`). Subjects are built from tokens that no id can break. Also a bus within one
//! process. Nothing in this crate knows what a message means.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tidegate_bus::BusError> {
//! use bytes::Bytes;
//! use tidegate_bus::{Bus, BusEvent, Delivery, FilterToken, InProcessBus, Subject, SubjectFilter};
//!
//! let bus = InProcessBus::new();
//! let mut updates = bus.subscribe(&SubjectFilter::new(["shop".into(), FilterToken::Any])?).await?;
//!
//! let subject = Subject::new(["shop", "acme.com"])?;
//! assert_eq!(bus.publish(&subject, Bytes::from("hello")).await?, Delivery::Received);
//! match updates.next().await {
//!     Some(BusEvent::Message(message)) => assert_eq!(message.payload, "hello"),
//!     Some(BusEvent::Gap) => println!("messages may be missing"),
//!     None => println!("the bus is closed"),
//! }
//! # Ok(())
//! # }
//! ```

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
