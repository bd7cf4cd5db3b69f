//! Subscriptions: connections that listen to some channels each, separate from the shared one.
//! Messages are lost while a connection is being established.

use redis::aio::PubSub;
use redis::{Client, RedisError, RedisResult};

use crate::connection::CONNECT_TIMEOUT;

/// Opens connections that listen to channels.
pub(crate) struct Subscriber(Vec<Client>);

/// What a connection listens to.
#[derive(Debug)]
pub(crate) enum Channels {
    /// One channel.
    Exact(String),
    /// All channels that match one of these patterns.
    Patterns(Vec<String>),
}

impl Subscriber {
    pub(crate) const fn new(nodes: Vec<Client>) -> Self {
        Self(nodes)
    }

    /// Opens a connection that listens to these channels. Returns once the server has confirmed it.
    pub(crate) async fn subscribe(&self, channels: &Channels) -> RedisResult<PubSub> {
        let mut failed = RedisError::from((redis::ErrorKind::InvalidClientConfig, "the URL names no server"));
        for node in &self.0 {
            let made = tokio::time::timeout(CONNECT_TIMEOUT, async {
                let mut ear = node.get_async_pubsub().await?;
                match channels {
                    Channels::Exact(channel) => ear.subscribe(channel).await?,
                    Channels::Patterns(patterns) => ear.psubscribe(patterns).await?,
                }
                Ok(ear)
            });
            match made.await {
                Ok(Ok(ear)) => return Ok(ear),
                Ok(Err(cause)) => failed = cause,
                Err(_) => failed = std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
            }
        }
        Err(failed)
    }
}
