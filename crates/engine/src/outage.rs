//! Outages of something that the engines of one process share. When many partitions fail for one
//! reason it is one outage, logged once: it begins with the first that fails, and ends when the
//! last works again. Whether to retry is decided elsewhere.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::id::Partition;

/// The outages of a store, shared by the engines of a process. Clones share state.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreOutages {
    /// Leases that were not renewed.
    pub leases: Arc<Outage>,
    /// Logs that could not be written.
    pub log: Arc<Outage>,
}

impl StoreOutages {
    /// Removes a partition that this process no longer owns.
    pub(crate) fn remove_partition(&self, partition: Partition) {
        self.leases.remove_partition(partition);
        self.log.remove_partition(partition);
    }
}

/// The partitions whose last attempt failed.
#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<BTreeSet<Partition>>);

impl Outage {
    /// Records a failed attempt; returns whether it begins the outage.
    pub(crate) fn record_failure(&self, partition: Partition) -> bool {
        let mut failing = self.failing();
        failing.insert(partition) && failing.len() == 1
    }

    /// Records a successful attempt; returns whether it ends the outage.
    pub(crate) fn record_success(&self, partition: Partition) -> bool {
        let mut failing = self.failing();
        failing.remove(&partition) && failing.is_empty()
    }

    /// Removes a partition that this process no longer has.
    pub(crate) fn remove_partition(&self, partition: Partition) {
        self.failing().remove(&partition);
    }

    fn failing(&self) -> MutexGuard<'_, BTreeSet<Partition>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_8_an_outage_of_many_partitions_begins_once_and_ends_with_the_last() {
        let outage = Outage::default();
        assert_eq!(
            [1, 2, 1, 3].map(|partition| outage.record_failure(partition)),
            [true, false, false, false]
        );
        assert_eq!(
            [1, 1, 4, 2, 3, 3].map(|partition| outage.record_success(partition)),
            [false, false, false, false, true, false]
        );
        assert!(outage.record_failure(2), "another one");
    }

    #[test]
    fn ops_8_a_partition_that_went_elsewhere_keeps_no_outage_up() {
        let outage = Outage::default();
        assert!(outage.record_failure(1) && !outage.record_failure(2));
        outage.remove_partition(1);
        assert!(outage.record_success(2), "the only one left");
        assert!(outage.record_failure(3));
        outage.remove_partition(3);
        assert!(outage.record_failure(1), "another one");
    }
}
