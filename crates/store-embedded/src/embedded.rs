//! A store in one directory. Each partition has a write-ahead log that appends go to first, a
//! SQLite file that is filled from it and only ever added to, and snapshots. One process has the
//! directory; one thread writes each file, and readers do not wait for it.

mod attempts;
mod audit;
mod blocking;
mod costs;
mod errors;
mod faults;
mod history;
mod journal;
mod journal_events;
mod journal_rows;
mod listing;
mod lock;
mod log;
mod mark;
mod nodes;
mod partition;
mod partition_meta;
mod permissions;
mod reader;
mod record_cache;
mod record_rows;
mod row_checksum;
mod rows;
mod schema;
mod shared;
mod shared_rows;
mod snapshot;
mod sqlite_checkpointer;
mod sweep;
mod tail;
mod upkeep;
mod wal;
mod wal_applier;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use faults::Faults;
use lock::Lock;
use partition::PartitionFile;
use tidegate_core::id::Partition;
use tidegate_store::{Clock, Result};

use crate::node_registry::NodeRegistry;

/// The options for opening a directory.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Faults injected by tests; none by default.
    #[doc(hidden)]
    pub faults: Arc<Faults>,
}

impl Options {
    /// Creates the default options.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, faults: Arc::default() }
    }

    /// Injects faults, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = faults;
        self
    }
}

impl Default for Options {
    /// Uses the machine's clock, made monotonic.
    fn default() -> Self {
        Self::new(Arc::new(tidegate_store::SteadyClock::new()))
    }
}

/// A store in one directory.
pub struct EmbeddedStore {
    files: Arc<OpenPartitions>,
    nodes: NodeRegistry,
    record_cache: Arc<record_cache::RecordCache>,
}

/// The open partitions, and what is needed to open another one.
struct OpenPartitions {
    open: Mutex<BTreeMap<Partition, Arc<PartitionFile>>>,
    options: Options,
    lock: Arc<Lock>,
}

impl EmbeddedStore {
    /// Opens the store in `dir`, creating it if it does not exist.
    ///
    /// # Errors
    /// `Held` when another process has it, `Unreadable` when it is damaged or newer than this
    /// program, `Unavailable` when the directory cannot be used.
    pub fn open(dir: &Path, options: Options) -> Result<Self> {
        let lock = Arc::new(Lock::take(dir)?);
        let nodes = NodeRegistry::new(Arc::clone(&options.clock));
        let files = OpenPartitions { open: Mutex::default(), options, lock };
        for partition in schema::partitions_in(dir)? {
            files.open(partition)?;
        }
        files.open(SHARED_IN)?;
        Ok(Self { files: Arc::new(files), nodes, record_cache: Arc::default() })
    }

    /// Returns the partition, if it has ever been written to.
    fn existing(&self, partition: Partition) -> Option<Arc<PartitionFile>> {
        self.files.map().get(&partition).cloned()
    }

    /// Returns the partition, creating it if it does not exist.
    async fn partition(&self, partition: Partition) -> Result<Arc<PartitionFile>> {
        if let Some(file) = self.existing(partition) {
            return Ok(file);
        }
        let files = Arc::clone(&self.files);
        blocking::run(move || files.open(partition)).await
    }
}

/// The partition whose file also holds the shared records.
const SHARED_IN: Partition = 0;

impl OpenPartitions {
    fn map(&self) -> MutexGuard<'_, BTreeMap<Partition, Arc<PartitionFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, partition: Partition) -> Result<Arc<PartitionFile>> {
        let mut open = self.map();
        if let Some(file) = open.get(&partition) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(PartitionFile::open(Arc::clone(&self.lock), partition, &self.options)?);
        open.insert(partition, Arc::clone(&file));
        Ok(file)
    }
}
