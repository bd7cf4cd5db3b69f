//! The Redis backend: one server of Redis 7 or Valkey, or a Redis Cluster. Implements the storage
//! ports with short scripts on the server, and the bus with publish and subscribe; decides nothing
//! about an operation. The layout of the keys is in `docs/redis-keys.md`.
//!
//! ```no_run
//! # async fn example() -> tidegate_store::Result<()> {
//! let store = tidegate_store_redis::open("redis://127.0.0.1:6379?prefix=tidegate").await?;
//! println!("{}", store.describe());
//! # Ok(())
//! # }
//! ```

mod address;
mod append;
mod archive_queue;
mod audit;
mod bus;
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
mod slot_backoff;
mod snapshot;
mod status_board;
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
pub use bus::RedisBus;
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
    /// The known offset of the server's clock, for plain commands.
    server_time: ServerTime,
    /// Only for tests: otherwise the server supplies the time.
    clock: Option<Arc<dyn Clock>>,
}

/// Opens the store that a URL names: `redis://`, `rediss://` or `redis+cluster://`.
///
/// # Errors
/// `Invalid` when the URL does not name a Redis or the server may evict data; `Unavailable` when it
/// is unreachable; `Unreadable` when a newer program wrote the data.
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

    /// Opens the store with a clock that a test moves. Every store on the same data must use the
    /// same clock.
    ///
    /// # Errors
    /// As [`open`].
    pub async fn open_with_clock(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::start(url, Some(clock)).await
    }

    /// Enables the archive queue: from now on every append notes what ended, for the archiver.
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

    /// The time argument of a script: empty, unless a test moves the clock.
    fn now(&self) -> String {
        self.clock.as_ref().map(|clock| clock.now().as_micros().to_string()).unwrap_or_default()
    }

    /// The server's time for plain commands, as far as this process knows it.
    async fn time(&self) -> Result<Time> {
        match &self.clock {
            Some(clock) => Ok(clock.now()),
            None => self.server_time.now(&self.connection, &self.keys.format()).await,
        }
    }
}

/// A duration as scripts take it.
fn span(ttl: Duration) -> String {
    micros(ttl).to_string()
}
