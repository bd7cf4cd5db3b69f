//! The storage ports. A backend keeps the log of a partition (`Log`), small records that any process may need at
//! once (`SharedState`), the journal of deployments (`Journal`), who is there (`Nodes`), and itself (`Upkeep`); some take
//! operations from other people's transactions (`Outbox`), and some keep what calls cost (`Costs`). The traits say what is
//! promised; how, is the backend's own business. Nothing here decides anything about an operation.

pub mod archive;
pub mod archive_queue;
pub mod checks;
pub mod clock;
pub mod codec;
pub mod costs;
mod error;
pub mod journal;
pub mod log;
pub mod nodes;
pub mod outbox;
pub mod shared;
pub mod upkeep;

use std::future::Future;
use std::pin::Pin;

pub use archive::Archive;
pub use archive_queue::ArchiveQueue;
pub use clock::{Clock, SteadyClock, WallClock};
pub use costs::Costs;
pub use error::{Error, Result, StoreErrorKind};
pub use journal::Journal;
pub use log::Log;
pub use nodes::Nodes;
pub use outbox::Outbox;
pub use shared::{NamedPage, RecordPage, SharedState};
pub use upkeep::Upkeep;

/// What every verb of a port returns, so that a port can be a trait object.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// All that a backend is.
pub trait Store: Log + SharedState + Journal + Nodes + Upkeep {}

impl<T: Log + SharedState + Journal + Nodes + Upkeep> Store for T {}
