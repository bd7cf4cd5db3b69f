//! A store in one directory: for each partition a plain file that appends go to first, a SQLite file that is filled
//! behind it and only ever added to, and the snapshots beside them. One process has the directory; one thread writes
//! each file, and whoever reads does not wait for it.

mod blocking;
mod costs;
mod errors;
mod faults;
mod history;
mod journal;
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

/// How a directory is opened.
#[derive(Clone)]
pub struct Options {
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// What tests break on purpose; nothing is broken unless somebody says so.
    pub faults: Arc<Faults>,
}

impl Options {
    /// The usual ones.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, faults: Arc::default() }
    }
}

impl Default for Options {
    /// By the machine's clock, kept steady.
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

/// The partitions that are open, and what opening another one needs.
struct OpenPartitions {
    open: Mutex<BTreeMap<Partition, Arc<PartitionFile>>>,
    options: Options,
    lock: Arc<Lock>,
}

impl EmbeddedStore {
    /// Opens the store in `dir`, and makes it when it is not there.
    ///
    /// # Errors
    /// `Held` when another process has it, `Unreadable` when it is damaged or newer than this program,
    /// `Unavailable` when the directory cannot be used.
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

    /// The partition, if anything was ever kept in it.
    fn existing(&self, partition: Partition) -> Option<Arc<PartitionFile>> {
        self.files.map().get(&partition).cloned()
    }

    /// The partition, made when it is not there.
    async fn partition(&self, partition: Partition) -> Result<Arc<PartitionFile>> {
        if let Some(file) = self.existing(partition) {
            return Ok(file);
        }
        let files = Arc::clone(&self.files);
        blocking::run(move || files.open(partition)).await
    }
}

/// The partition whose file holds the shared records too.
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
