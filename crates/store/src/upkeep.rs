//! Maintenance of a store, and its description of itself.

use tidegate_core::id::Partition;

use crate::{Outbox, StatusBoard, StoreFuture};

/// Statistics of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Bytes on disk or in the server, as far as known.
    pub bytes: u64,
    /// Operations kept.
    pub operations: u64,
    /// Appends kept since the last snapshot.
    pub appends: u64,
    /// Idempotency records kept, among them those that expired and are not swept yet. A store may
    /// stop counting at
    /// [`RECORDS_COUNTED_MAX`](tidegate_core::bounds::RECORDS_COUNTED_MAX).
    pub records: u64,
}

/// The length of the secret that a store keeps for its nodes, in bytes.
pub const SECRET_LEN: usize = 16;

/// Maintenance of a store.
pub trait Upkeep: Send + Sync {
    /// Migrates the layout to the current version. `Unreadable` when it is newer than this program.
    fn migrate(&self) -> StoreFuture<'_, ()>;

    /// Checks that this program can read and write the layout; changes nothing. `Unreadable` when
    /// it is newer, or missing.
    fn check_layout(&self) -> StoreFuture<'_, ()>;

    /// Returns the number of partitions: the first requested number is kept for good, because it
    /// determines the partition of every operation. `Invalid` for zero.
    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition>;

    /// Returns the secret by which the nodes on this store recognize each other: the first one
    /// offered is kept, and any later offer returns that.
    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]>;

    /// Checks whether it would take an append now; the error says why not.
    fn health(&self) -> StoreFuture<'_, ()>;

    /// Returns statistics.
    fn stats(&self) -> StoreFuture<'_, StoreStats>;

    /// The server's version and the settings that decide what survives a power loss, by the
    /// server's own names. Empty where there is no server, or where it does not report them.
    fn server_settings(&self) -> StoreFuture<'_, Vec<(String, String)>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether other processes may have it open too. Then an earlier owner of a partition may still
    /// be alive, with a call in flight.
    fn is_shared(&self) -> bool;

    /// The outbox that applications fill inside their own transactions, if there is one.
    fn outbox(&self) -> Option<&dyn Outbox> {
        None
    }

    /// The keys that people read, if it has any.
    fn status_board(&self) -> Option<&dyn StatusBoard> {
        None
    }

    /// A description for people: `file:/var/lib/tidegate`, `memory:`. Never contains a password.
    fn describe(&self) -> String;
}
