//! The port itself: what every bus promises.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use tidegate_core::bounds::BUS_PAYLOAD_LEN_MAX;

use crate::{BusError, BusErrorKind, BusSubscription, Subject, SubjectFilter};

/// The return type of the methods of the port, so that it can be a trait object.
pub type BusFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BusError>> + Send + 'a>>;

/// A bus that delivers messages to current subscribers, at most once.
///
/// Every subscription whose filter matches gets its own copy, those of the publisher too. Messages
/// of one bus value on one subject arrive in the order in which they were published.
pub trait Bus: Send + Sync + 'static {
    /// Publishes `payload` on `subject`.
    ///
    /// # Errors
    /// `TooLarge` when the payload exceeds a bound, `Denied` when the server forbids it,
    /// `Unavailable` when the bus is not connected, `Closed` after [`Bus::close`].
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery>;

    /// Subscribes; resolves only once the bus has confirmed the subscription, so that every message
    /// that is published afterwards is delivered or reported as a gap.
    ///
    /// # Errors
    /// As [`Bus::publish`].
    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription>;

    /// Closes the bus: its subscriptions end after what they have received, and later calls fail
    /// with `Closed`. Dropping the bus closes it as well. A subscription also ends when the server
    /// withdraws its permission.
    fn close(&self);
}

/// What the bus knows about who received a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At least one subscription matched. Its subscriber may still lose the message, and then finds
    /// a gap.
    Received,
    /// No subscription matched: the message is gone.
    NoSubscriber,
    /// The bus did not find out.
    Unknown,
}

/// An item of a [`BusSubscription`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    /// A message that matches the filter.
    Message(BusMessage),
    /// Messages may have been lost here: the bus reconnected, or the subscriber was too slow. The
    /// subscription is confirmed again.
    Gap,
}

/// A message and the subject that it was published on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMessage {
    /// The subject, without wildcards.
    pub subject: Subject,
    /// The content, at most [`BUS_PAYLOAD_LEN_MAX`] bytes.
    pub payload: Bytes,
}

impl BusMessage {
    /// Creates a message from what a server delivered. `None` when it cannot have been published
    /// through this port: its subject is not encoded, or its payload is too large.
    #[must_use]
    pub fn from_wire(subject: &str, payload: Bytes) -> Option<Self> {
        let subject = Subject::parse(subject)?;
        (payload.len() <= BUS_PAYLOAD_LEN_MAX).then_some(Self { subject, payload })
    }
}

/// Checks the bound that every bus has on a payload.
///
/// # Errors
/// `TooLarge` when it is exceeded.
pub fn check_payload(payload: &Bytes) -> Result<(), BusError> {
    if payload.len() <= BUS_PAYLOAD_LEN_MAX {
        return Ok(());
    }
    let message =
        format!("the payload has {} bytes, at most {BUS_PAYLOAD_LEN_MAX} are allowed", payload.len());
    Err(BusError::new(BusErrorKind::TooLarge, message))
}
