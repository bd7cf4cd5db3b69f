//! The Redis backend: one server of Redis 7 or Valkey, or a Redis Cluster. Keeps the promises of the storage ports by
//! short scripts on the server; decides nothing about an operation. What lies under which key is in
//! `docs/redis-keys.md`.

mod address;
mod append;
mod archive_queue;
mod checks;
mod connection;
mod cost_queue;
mod entry;
mod errors;
mod history;
mod journal;
mod keys;
mod listing;
mod log;
mod nodes;
mod reading;
mod reply;
mod scripts;
mod server_time;
mod shared;
mod snapshot;
mod subscriber;
mod sweep;
mod tail;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::time::micros;
use tidegate_store::{Clock, Result, Store};

use address::Address;
use connection::SharedConnection;
use keys::Keys;
use server_time::ServerTime;
use tail::Tails;

/// A store in Redis.
pub struct RedisStore {
    address: Address,
    keys: Keys,
    connection: SharedConnection,
    tails: Tails,
    /// Whether appends note what ended, for an archive.
    keeps_archive_queue: bool,
    /// What plain commands know of the server's clock.
    server_time: ServerTime,
    /// Only for tests: otherwise the server tells the time.
    clock: Option<Arc<dyn Clock>>,
}

/// Opens the store that a URL names: `redis://`, `rediss://` or `redis+cluster://`.
///
/// # Errors
/// `Invalid` when the URL names no Redis or the server may throw data away; `Unavailable` when it is out of reach;
/// `Unreadable` when a newer program wrote what is there.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(RedisStore::open(url).await?))
}

impl RedisStore {
    /// Opens the store that a URL names, by the server's clock.
    ///
    /// # Errors
    /// As [`open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::start(url, None).await
    }

    /// The same by a clock that a test moves. Every store on the same data must go by the same one.
    ///
    /// # Errors
    /// As [`open`].
    pub async fn open_with_clock(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::start(url, Some(clock)).await
    }

    /// The same store with a trail: from now on every append notes what ended, for whoever archives it.
    #[must_use]
    pub const fn with_archive_queue(mut self) -> Self {
        self.keeps_archive_queue = true;
        self
    }

    async fn start(url: &str, clock: Option<Arc<dyn Clock>>) -> Result<Self> {
        let address = Address::parse(url)?;
        let link = SharedConnection::new(&address)?;
        let keys = Keys::new(&address.prefix);
        let (tails, server_time) = (Tails::default(), ServerTime::new());
        let store =
            Self { address, keys, connection: link, tails, keeps_archive_queue: false, server_time, clock };
        store.check_server().await?;
        store.check_format().await?;
        Ok(store)
    }

    /// What a script is told of the time: nothing, unless a test moves it.
    fn now(&self) -> String {
        self.clock.as_ref().map(|clock| clock.now().as_micros().to_string()).unwrap_or_default()
    }

    /// The server's time for plain commands, as far as it is known here.
    async fn time(&self) -> Result<Time> {
        match &self.clock {
            Some(clock) => Ok(clock.now()),
            None => self.server_time.now(&self.connection, &self.keys.format()).await,
        }
    }
}

/// A time span as scripts take it.
fn span(ttl: Duration) -> String {
    micros(ttl).to_string()
}
