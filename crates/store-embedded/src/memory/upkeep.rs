//! Health checks and statistics of a store in memory.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{StoreFuture, Upkeep};

use super::{MemoryStore, ready};
use crate::checks;

impl Upkeep for MemoryStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        ready(|| Ok(()))
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        ready(|| Ok(()))
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        ready(move || {
            checks::check_partition_count(wanted)?;
            Ok(*self.count.get_or_init(|| wanted))
        })
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        ready(move || Ok(*self.secret.get_or_init(|| offered)))
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        ready(|| Ok(()))
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        ready(|| {
            let partitions = self.partitions();
            let mut stats = StoreStats::default();
            for partition in partitions.values() {
                partition.count_into(&mut stats);
            }
            stats.records = self.shared().record_count();
            Ok(stats)
        })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "memory:".into()
    }
}
