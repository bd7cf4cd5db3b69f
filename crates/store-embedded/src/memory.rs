//! A store in plain memory: maps behind a mutex, with immediate results, without threads and tasks,
//! so it works with simulated time. It survives nothing; it is for tests, simulations and
//! experiments.

mod audit;
mod costs;
mod journal;
mod log;
mod nodes;
mod shared;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tidegate_core::id::Partition;
use tidegate_core::journal::MemoryJournal;
use tidegate_store::audit::{AuditEntry, AuditId};
use tidegate_store::upkeep::SECRET_LEN;
use tidegate_store::{Clock, Result, StoreFuture};

use crate::node_registry::NodeRegistry;

/// A store in plain memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    partitions: Mutex<log::Partitions>,
    shared: Mutex<shared::Tables>,
    journal: Mutex<MemoryJournal>,
    audit: Mutex<BTreeMap<AuditId, AuditEntry>>,
    nodes: NodeRegistry,
    count: OnceLock<Partition>,
    secret: OnceLock<[u8; SECRET_LEN]>,
}

impl MemoryStore {
    /// Creates an empty store that uses this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let nodes = NodeRegistry::new(Arc::clone(&clock));
        Self {
            clock,
            partitions: Mutex::default(),
            shared: Mutex::default(),
            journal: Mutex::default(),
            audit: Mutex::default(),
            nodes,
            count: OnceLock::new(),
            secret: OnceLock::new(),
        }
    }

    fn partitions(&self) -> MutexGuard<'_, log::Partitions> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, shared::Tables> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, MemoryJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn audit(&self) -> MutexGuard<'_, BTreeMap<AuditId, AuditEntry>> {
        self.audit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that runs `step` when it is first polled.
fn ready<'a, T: Send + 'a>(step: impl FnOnce() -> Result<T> + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move { step() })
}
