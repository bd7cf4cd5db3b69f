//! Costs of calls and the state of limits, in plain lists that end with the process.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::costs::{CostQuery, CostReport, LimitSnapshot, sum_costs};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Costs, StoreFuture};

use super::{MemoryStore, ready};

impl Costs for MemoryStore {
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        ready(move || Ok(sum_costs(self.partitions().values().flat_map(|kept| &kept.costs), &question)))
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        ready(move || {
            let mut partitions = self.partitions();
            let kept = partitions.entry(owner.partition).or_default();
            kept.lease.check(owner)?;
            let mut gone = 0;
            kept.costs.retain(|cost| {
                let goes = gone < retention.most && cost.at < retention.ended_before;
                gone += usize::from(goes);
                !goes
            });
            Ok(gone)
        })
    }

    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        ready(move || {
            let mut partitions = self.partitions();
            let kept = partitions.entry(owner.partition).or_default();
            kept.lease.check(owner)?;
            kept.standings.extend(standings.into_iter().map(|standing| (standing.name.clone(), standing)));
            Ok(())
        })
    }

    fn remove_limit_snapshots(
        &self,
        owner: Ownership,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        ready(move || {
            let mut partitions = self.partitions();
            let kept = partitions.entry(owner.partition).or_default();
            kept.lease.check(owner)?;
            let names: BTreeSet<_> = names.into_iter().collect();
            kept.standings.retain(|name, standing| !names.contains(name) && standing.updated_at >= before);
            Ok(())
        })
    }

    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>> {
        ready(move || {
            let partitions = self.partitions();
            Ok(partitions
                .get(&partition)
                .map(|kept| kept.standings.values().cloned().collect())
                .unwrap_or_default())
        })
    }
}
