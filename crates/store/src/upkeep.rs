//! What a store needs done to it, and what it says about itself.

use tidegate_core::id::Partition;

use crate::{Outbox, StoreFuture};

/// What a store says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Bytes on disk or in the server, as far as known.
    pub bytes: u64,
    /// Operations kept.
    pub operations: u64,
    /// Appends kept since the last snapshot.
    pub appends: u64,
}

/// Length of the secret that a store keeps for its nodes, in bytes.
pub const SECRET_LEN: usize = 16;

/// Looking after a store.
pub trait Upkeep: Send + Sync {
    /// Brings the layout up to date. `Unreadable` when it is newer than this program.
    fn migrate(&self) -> StoreFuture<'_, ()>;

    /// Whether the layout is one that this program reads and writes; changes nothing. `Unreadable` when it is newer, or not
    /// there.
    fn check_layout(&self) -> StoreFuture<'_, ()>;

    /// How many partitions there are: what is asked for first is kept for good, because every operation has its place
    /// by it. `Invalid` for none.
    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition>;

    /// The secret that the nodes on this store know each other by: what is offered first is kept, and whoever offers
    /// another one later is given that.
    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]>;

    /// Whether it would take an append now; the error says why not.
    fn health(&self) -> StoreFuture<'_, ()>;

    /// What it says about itself.
    fn stats(&self) -> StoreFuture<'_, StoreStats>;

    /// The server it is on, by the server's own names: its version, and the settings on which hangs what outlives a
    /// loss of power. Nothing where there is no server, or where it does not tell.
    fn server_settings(&self) -> StoreFuture<'_, Vec<(String, String)>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether other processes may have it open too. Then whoever owned a partition before may still be alive, and a
    /// call of theirs under way.
    fn is_shared(&self) -> bool;

    /// The outbox that applications fill inside their own transactions, where there is one.
    fn outbox(&self) -> Option<&dyn Outbox> {
        None
    }

    /// A word for people: `file:/var/lib/tidegate`, `memory:`. Never a password.
    fn describe(&self) -> String;
}
