//! Broken costs and limits.

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::costs::{CostQuery, CostReport, LimitSnapshot};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Costs, StoreFuture};

use super::{BrokenStore, Quirk};

impl BrokenStore {
    fn inner_costs(&self) -> &dyn Costs {
        self.inner.costs().unwrap()
    }
}

impl Costs for BrokenStore {
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        Box::pin(async move {
            let mut bill = self.inner_costs().cost_report(question).await?;
            if self.is_in_image(Quirk::ImageLacksSomeCosts) {
                bill.lines.pop();
            }
            Ok(bill)
        })
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        let mut retention = retention;
        if self.is(Quirk::SweepTakesYoungCosts) && retention.ended_before > Time::ZERO {
            retention.ended_before = Time::MAX;
        }
        if self.is(Quirk::SweepCostsUnbounded) {
            retention.most = usize::MAX;
        }
        self.inner_costs().sweep_costs(owner, retention)
    }

    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        let latest = self.notes.lock().unwrap().latest;
        let owner = if self.is(Quirk::StandingsIgnoreEpoch) { latest.unwrap_or(owner) } else { owner };
        Box::pin(async move {
            let known = self.inner_costs().limit_snapshots(owner.partition).await?;
            let is_known = |standing: &LimitSnapshot| known.iter().any(|known| known.name == standing.name);
            let mut standings = standings;
            standings.retain(|standing| !self.is(Quirk::StandingsStay) || !is_known(standing));
            self.inner_costs().save_limit_snapshots(owner, standings).await
        })
    }

    fn remove_limit_snapshots(
        &self,
        owner: Ownership,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        let (mut names, mut before) = (names, before);
        if self.is(Quirk::GoneStandingsStay) {
            (names, before) = (Vec::new(), Time::ZERO);
        }
        self.inner_costs().remove_limit_snapshots(owner, names, before)
    }

    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>> {
        self.inner_costs().limit_snapshots(partition)
    }
}
