//! One subscription: passes messages on until the subscriber is gone or the bus is closed, and
//! reconnects when the connection is lost. A connection that does not answer counts as lost.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink};
use tidegate_bus::{BusMessage, SubscriptionSender};
use tidegate_core::backoff::Backoff;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::channel::subject_of;
use crate::subscriber::{Channels, Subscriber};

/// How often a connection is checked.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long the server may take to answer a check.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The waits between attempts to reconnect.
const RECONNECT: Backoff =
    Backoff { base: Duration::from_millis(50), ceiling: Duration::from_secs(2), jitter_percent: 50 };

pub(super) async fn forward(
    subscriber: Subscriber,
    channels: Channels,
    first: PubSub,
    sender: SubscriptionSender,
    mut closed: watch::Receiver<bool>,
) {
    let forward = async {
        let mut connection = first;
        loop {
            receive(connection, &sender).await;
            tracing::warn!("a subscription to Redis is lost; subscribing again");
            connection = reconnect(&subscriber, &channels).await;
            tracing::info!("subscribed to Redis again");
            sender.gap();
        }
    };
    tokio::select! {
        () = sender.unsubscribed() => {}
        _ = closed.wait_for(|is_closed| *is_closed) => {}
        () = forward => {}
    }
}

/// Passes messages on until the connection is lost.
async fn receive(connection: PubSub, sender: &SubscriptionSender) {
    let (sink, mut messages) = connection.split();
    let lost = until_unanswered(sink);
    tokio::pin!(lost);
    loop {
        tokio::select! {
            () = &mut lost => return,
            message = messages.next() => {
                let Some(message) = message else { return };
                let payload = Bytes::copy_from_slice(message.get_payload_bytes());
                match BusMessage::from_wire(subject_of(message.get_channel_name()), payload) {
                    Some(message) => { sender.send(message); }
                    None => tracing::debug!(channel = message.get_channel_name(), "dropped a foreign message"),
                }
            }
        }
    }
}

async fn until_unanswered(mut sink: PubSubSink) {
    loop {
        sleep(PING_INTERVAL).await;
        if !matches!(timeout(PING_TIMEOUT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
            return;
        }
    }
}

async fn reconnect(subscriber: &Subscriber, channels: &Channels) -> PubSub {
    let mut failures = 0;
    loop {
        match subscriber.subscribe(channels).await {
            Ok(connection) => return connection,
            Err(error) => {
                failures += 1;
                tracing::debug!(%error, failures, "could not subscribe again");
            }
        }
        let chance = RandomState::new().build_hasher().finish() as u32;
        sleep(RECONNECT.delay(failures, chance)).await;
    }
}
