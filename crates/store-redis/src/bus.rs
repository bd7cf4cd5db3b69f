//! A bus on Redis: `PUBLISH` on the shared connection, and one connection for each subscription.
//! The server keeps nothing, so a subscription that reconnects reports a gap.

mod channel;
mod forward;

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use tidegate_bus::{
    Bus, BusError, BusErrorKind, BusFuture, BusSubscription, Delivery, Subject, SubjectFilter, check_payload,
};
use tidegate_store::StoreErrorKind;
use tokio::sync::watch;

use crate::address::Address;
use crate::connection::SharedConnection;
use channel::{channel_of, channels_of};

/// How long a call waits for the server.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A bus on one server of Redis or Valkey, or on a Redis Cluster.
///
/// In a cluster a node counts only its own subscribers, so there [`Delivery`] is `Received` or
/// `Unknown`.
pub struct RedisBus {
    connection: SharedConnection,
    prefix: String,
    is_closed: watch::Sender<bool>,
}

impl RedisBus {
    /// Connects to the server that a URL names: `redis://`, `rediss://` or `redis+cluster://`.
    /// Buses with different `prefix` parameters are apart.
    ///
    /// # Errors
    /// `Invalid` when the URL does not name a Redis, `Denied` when the server does not let this
    /// user in, `Unavailable` when it is unreachable.
    pub async fn connect(url: &str) -> Result<Self, BusError> {
        let address = Address::parse(url).map_err(of_store)?;
        let connection = SharedConnection::new(&address).map_err(of_store)?;
        let bus = Self { connection, prefix: address.prefix, is_closed: watch::Sender::new(false) };
        bus.send(cmd("PING")).await?;
        Ok(bus)
    }

    async fn publish_now(&self, subject: &Subject, payload: &Bytes) -> Result<Delivery, BusError> {
        self.check_open()?;
        check_payload(payload)?;
        let mut publish = cmd("PUBLISH");
        publish.arg(channel_of(&self.prefix, subject)).arg(&payload[..]);
        let answer = self.send(publish).await?;
        Ok(match redis::from_redis_value::<u64>(answer) {
            Ok(1..) => Delivery::Received,
            Ok(0) if !self.connection.is_cluster() => Delivery::NoSubscriber,
            _ => Delivery::Unknown,
        })
    }

    async fn subscribe_now(&self, filter: &SubjectFilter) -> Result<BusSubscription, BusError> {
        self.check_open()?;
        let closed = self.is_closed.subscribe();
        let (subscriber, channels) = (self.connection.subscriber(), channels_of(&self.prefix, filter));
        let first = subscriber.subscribe(&channels).await.map_err(|cause| self.error_of(cause))?;
        let (sender, subscription) = BusSubscription::with_sender();
        tokio::spawn(forward::forward(subscriber, channels, first, sender, closed));
        Ok(subscription)
    }

    /// Sends a command to one node, always the same: so messages stay in order.
    async fn send(&self, command: redis::Cmd) -> Result<redis::Value, BusError> {
        let answer = tokio::time::timeout(CALL_TIMEOUT, self.connection.send_to(&self.prefix, command)).await;
        match answer {
            Ok(answer) => answer.map_err(|failed| self.error_of(failed.cause)),
            Err(_) => Err(self.error_of(std::io::Error::from(std::io::ErrorKind::TimedOut).into())),
        }
    }

    fn check_open(&self) -> Result<(), BusError> {
        if *self.is_closed.borrow() { Err(BusError::closed()) } else { Ok(()) }
    }

    fn error_of(&self, cause: redis::RedisError) -> BusError {
        let is_denied = cause.kind() == redis::ErrorKind::AuthenticationFailed
            || matches!(cause.code(), Some("NOPERM" | "NOAUTH" | "WRONGPASS"));
        let (kind, what) = if is_denied {
            (BusErrorKind::Denied, "does not allow this")
        } else {
            (BusErrorKind::Unavailable, "did not respond properly")
        };
        BusError::new(kind, format!("{} {what}", self.connection.name())).with_source(cause)
    }
}

fn of_store(error: tidegate_store::Error) -> BusError {
    let kind = match error.kind() {
        StoreErrorKind::Invalid => BusErrorKind::Invalid,
        _ => BusErrorKind::Unavailable,
    };
    BusError::new(kind, "the bus cannot be opened").with_source(error)
}

impl Bus for RedisBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(async move { self.publish_now(subject, &payload).await })
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        Box::pin(self.subscribe_now(filter))
    }

    fn close(&self) {
        self.is_closed.send_replace(true);
    }
}

impl Drop for RedisBus {
    fn drop(&mut self) {
        self.close();
    }
}
