//! The PostgreSQL backend: one schema of a database that any number of processes share. Ownership,
//! fencing and shared records are single steps in the server, by the server's own clock. This crate
//! decides nothing about an operation, and no password it was given ever leaves it.
//!
//! ```no_run
//! use tidegate_store::Upkeep;
//! use tidegate_store_postgres::PostgresStore;
//!
//! # async fn example() -> tidegate_store::Result<()> {
//! let store = PostgresStore::connect("postgres://me@localhost/app?schema=tidegate").await?;
//! // Creates the schema and its tables, or brings them up to date.
//! store.migrate().await?;
//! # Ok(())
//! # }
//! ```

mod address;
mod append;
mod archive;
mod attempts;
mod audit;
mod checks;
mod costs;
mod errors;
mod hints;
mod history;
mod journal;
mod listing;
mod log;
mod nodes;
pub mod outbox;
mod rows;
mod schema;
mod session;
mod shared;
mod snapshot;
mod sweep;
mod upkeep;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::{Clock, Result};
use tokio::sync::Semaphore;

pub use archive::PostgresArchive;

use append::Appenders;
use hints::Subscriber;
use session::Sessions;

/// The default schema.
const SCHEMA_DEFAULT: &str = "tidegate";
/// The number of concurrent replays.
const LOADS_MAX: usize = 4;

/// The options of a store on PostgreSQL.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The clock to use; the server's own by default.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Options {
    /// Uses a clock that a test moves. Every store on the same data must use the same one.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

/// A store on PostgreSQL.
pub struct PostgresStore {
    sessions: Sessions,
    clock: Option<Arc<dyn Clock>>,
    appenders: Appenders,
    subscriber: Subscriber,
    /// Replays take long: most connections of the pool are left to other work.
    loads: Semaphore,
    /// Where the second scan of a sweep resumes.
    sweep_resume: Mutex<HashMap<Partition, Seq>>,
}

impl PostgresStore {
    /// Connects to the database that a URL names:
    /// `postgres://user:password@host:port/database?schema=tidegate`. Does not create the schema;
    /// `migrate` does.
    ///
    /// # Errors
    /// `Invalid` when the URL is invalid or the server is too old, `Unavailable` when it is
    /// unreachable.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects with options.
    ///
    /// # Errors
    /// As for `connect`.
    pub async fn connect_with(url: &str, options: Options) -> Result<Self> {
        let sessions = Sessions::open(url, SCHEMA_DEFAULT).await?;
        Ok(Self {
            appenders: Appenders::new(sessions.clone()),
            subscriber: Subscriber::new(sessions.clone()),
            sessions,
            clock: options.clock,
            loads: Semaphore::new(LOADS_MAX),
            sweep_resume: Mutex::default(),
        })
    }

    /// The time of the injected clock, as it is bound; `None` when the server's own is used.
    fn clock(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| rows::micros(clock.now()))
    }
}
