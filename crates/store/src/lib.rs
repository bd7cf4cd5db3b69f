//! The storage ports. A backend keeps the log of a partition (`Log`), small records that any
//! process may need at once (`SharedState`), the journal of deployments (`Journal`), the audit log
//! (`AuditLog`), the register of nodes (`Nodes`), passes hints between processes (`Hints`), and
//! maintains itself (`Upkeep`); some take operations from applications' own transactions
//! (`Outbox`), and some keep call costs (`Costs`). The traits state the guarantees; how to provide
//! them is up to the backend. Nothing in this crate decides anything about an operation.
//!
//! ```
//! use tidegate_store::{Clock, SteadyClock};
//!
//! // Stores take the time from a clock, so that tests can move it.
//! let clock = SteadyClock::new();
//! let earlier = clock.now();
//! assert!(clock.now() >= earlier);
//! ```

pub mod archive;
pub mod archive_queue;
pub mod attempt;
pub mod audit;
pub mod checks;
pub mod clock;
pub mod codec;
pub mod costs;
mod error;
pub mod hints;
pub mod journal;
pub mod log;
pub mod nodes;
pub mod outbox;
pub mod shared;
pub mod status_board;
pub mod upkeep;

use std::future::Future;
use std::pin::Pin;

pub use archive::Archive;
pub use archive_queue::ArchiveQueue;
pub use audit::AuditLog;
pub use clock::{Clock, SteadyClock, WallClock};
pub use costs::Costs;
pub use error::{Error, Result, StoreErrorKind};
pub use hints::Hints;
pub use journal::Journal;
pub use log::Log;
pub use nodes::Nodes;
pub use outbox::Outbox;
pub use shared::{NamedPage, RecordPage, SharedState};
pub use status_board::StatusBoard;
pub use upkeep::Upkeep;

/// The return type of every method of a port, so that a port can be a trait object.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A complete backend.
pub trait Store: Log + SharedState + Journal + AuditLog + Nodes + Upkeep {}

impl<T: Log + SharedState + Journal + AuditLog + Nodes + Upkeep> Store for T {}
