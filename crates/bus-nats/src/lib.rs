//! The bus port on core NATS. Every message names a reply subject in this connection's inbox and is
//! followed by an empty message to it: the server answers with *no responders* before that echo, so
//! one round trip tells whether anyone subscribes. The same echo confirms a subscription. The
//! driver's `request` is not used: it keeps a waiter for every question without an answer.
//!
//! ```no_run
//! # async fn example() -> Result<(), tidegate_bus::BusError> {
//! use bytes::Bytes;
//! use tidegate_bus::{Bus, Delivery, Subject};
//! use tidegate_bus_nats::NatsBus;
//!
//! let bus = NatsBus::connect("nats://127.0.0.1:4222").await?;
//! let subject = Subject::new(["shop", "acme.com"])?;
//! if bus.publish(&subject, Bytes::from("hello")).await? == Delivery::NoSubscriber {
//!     println!("no one listens");
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod denials;
mod forward;
mod inbox;
mod link;

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::client::PublishErrorKind;
use async_nats::connection::State;
use bytes::Bytes;
use tidegate_bus::{
    Bus, BusError, BusErrorKind, BusFuture, BusSubscription, Delivery, Subject, SubjectFilter, check_payload,
};

use denials::DeniedUse;
use inbox::EchoOutcome;
use link::Link;

/// How long the driver and the server may take for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a confirmed subscription waits for a denial: the driver reports it on another way than
/// the echo that follows it.
const DENIAL_GRACE: Duration = Duration::from_millis(10);

/// A bus on a NATS server or cluster.
pub struct NatsBus {
    client: Client,
    link: Arc<Link>,
}

impl NatsBus {
    /// Connects to the servers that a URL names: `nats://` or `tls://`, with a user and password or
    /// a token; several are separated by commas. The user must be allowed to publish and subscribe
    /// to `_INBOX.>`.
    ///
    /// # Errors
    /// `Invalid` when the URL names no NATS server, `Denied` when the server does not let this user
    /// in or not use its inbox, `Unavailable` when no server is reachable.
    pub async fn connect(url: &str) -> Result<Self, BusError> {
        let link = Arc::new(Link::new());
        let client = address::connect(url, &link).await?;
        let bus = Self { client, link };
        let replies =
            bus.client.subscribe(bus.link.inbox.filter()).await.map_err(|error| unavailable(&error))?;
        tokio::spawn(link::receive_replies(Arc::clone(&bus.link), replies));
        bus.confirm().await?;
        tokio::spawn(link::confirm_reconnects(Arc::clone(&bus.link), bus.client.clone()));
        Ok(bus)
    }

    async fn publish_now(&self, subject: &Subject, payload: Bytes) -> Result<Delivery, BusError> {
        check_payload(&payload)?;
        self.check_connected()?;
        self.check_allowed(DeniedUse::Publish, subject.as_str())?;
        let echo = self.link.inbox.expect_echo();
        let sent = self.client.publish_with_reply(subject.as_str().to_owned(), echo.subject(), payload).await;
        sent.map_err(|error| match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => {
                BusError::new(BusErrorKind::TooLarge, "the server accepts no payload of this size")
            }
            PublishErrorKind::InvalidSubject => BusError::new(BusErrorKind::Invalid, error.to_string()),
            PublishErrorKind::Send => unavailable(&error),
        })?;
        let outcome = echo.wait(&self.client).await;
        self.check_allowed(DeniedUse::Publish, subject.as_str())?;
        Ok(match outcome {
            EchoOutcome::Echo => Delivery::Received,
            EchoOutcome::NoResponders => Delivery::NoSubscriber,
            EchoOutcome::Lost => Delivery::Unknown,
        })
    }

    async fn subscribe_now(&self, filter: &SubjectFilter) -> Result<BusSubscription, BusError> {
        self.check_connected()?;
        self.check_allowed(DeniedUse::Subscribe, filter.as_str())?;
        // Before the subscription, so that no loss after it is overlooked.
        let status = self.link.status();
        let gaps = status.borrow().gaps;
        let messages = self.client.subscribe(filter.as_str().to_owned()).await;
        let messages = messages.map_err(|error| unavailable(&error))?;
        self.confirm().await?;
        self.link.denials.wait_for(DeniedUse::Subscribe, filter.as_str(), DENIAL_GRACE).await;
        self.check_allowed(DeniedUse::Subscribe, filter.as_str())?;
        let (sender, subscription) = BusSubscription::with_sender();
        tokio::spawn(forward::forward(
            Arc::clone(&self.link),
            status,
            gaps,
            filter.clone(),
            messages,
            sender,
        ));
        Ok(subscription)
    }

    /// Returns when the server has processed everything that this connection sent before.
    async fn confirm(&self) -> Result<(), BusError> {
        match self.link.inbox.expect_echo().wait(&self.client).await {
            EchoOutcome::Echo | EchoOutcome::NoResponders => Ok(()),
            EchoOutcome::Lost => {
                self.check_allowed(DeniedUse::Publish, self.link.inbox.name())?;
                self.check_allowed(DeniedUse::Subscribe, self.link.inbox.name())?;
                Err(BusError::new(BusErrorKind::Unavailable, "the NATS server did not answer"))
            }
        }
    }

    fn check_connected(&self) -> Result<(), BusError> {
        if self.link.is_closed() {
            return Err(BusError::closed());
        }
        if self.client.connection_state() != State::Connected {
            return Err(BusError::new(BusErrorKind::Unavailable, "the NATS server is not connected"));
        }
        Ok(())
    }

    fn check_allowed(&self, used: DeniedUse, subject: &str) -> Result<(), BusError> {
        if !self.link.denials.contains(used, subject) {
            return Ok(());
        }
        let message = format!("the NATS server does not allow this user to {used} {subject}");
        Err(BusError::new(BusErrorKind::Denied, message))
    }
}

fn unavailable(error: &dyn std::error::Error) -> BusError {
    BusError::new(BusErrorKind::Unavailable, format!("the NATS server is not usable: {error}"))
}

/// Bounds a call: the driver waits as long as its queue is full.
async fn within<T>(
    call: impl Future<Output = Result<T, BusError>>,
    late: Result<T, BusError>,
) -> Result<T, BusError> {
    tokio::time::timeout(CALL_TIMEOUT, call).await.unwrap_or(late)
}

impl Bus for NatsBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(within(self.publish_now(subject, payload), Ok(Delivery::Unknown)))
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        let late = Err(BusError::new(BusErrorKind::Unavailable, "the NATS server did not confirm in time"));
        Box::pin(within(self.subscribe_now(filter), late))
    }

    fn close(&self) {
        self.link.close();
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        self.close();
    }
}
