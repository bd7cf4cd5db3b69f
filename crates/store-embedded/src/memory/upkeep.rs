//! Looking after memory: there is little to do.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, Stats};
use tidegate_store::{Answer, Upkeep};

use super::{Memory, at_once};
use crate::checks;

impl Upkeep for Memory {
    fn migrate(&self) -> Answer<'_, ()> {
        at_once(|| Ok(()))
    }

    fn layout(&self) -> Answer<'_, ()> {
        at_once(|| Ok(()))
    }

    fn partitions(&self, wanted: Partition) -> Answer<'_, Partition> {
        at_once(move || {
            checks::some_partitions(wanted)?;
            Ok(*self.count.get_or_init(|| wanted))
        })
    }

    fn secret(&self, offered: [u8; SECRET_LEN]) -> Answer<'_, [u8; SECRET_LEN]> {
        at_once(move || Ok(*self.secret.get_or_init(|| offered)))
    }

    fn health(&self) -> Answer<'_, ()> {
        at_once(|| Ok(()))
    }

    fn stats(&self) -> Answer<'_, Stats> {
        at_once(|| {
            let partitions = self.partitions();
            let mut stats = Stats::default();
            for partition in partitions.values() {
                partition.count_into(&mut stats);
            }
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
