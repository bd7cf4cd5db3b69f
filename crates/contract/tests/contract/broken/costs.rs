//! Costs and limits that are kept wrongly.

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::costs::{Bill, Question, Standing};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Answer, Costs};

use super::{Broken, Quirk};

impl Broken {
    fn books(&self) -> &dyn Costs {
        self.inner.costs().unwrap()
    }
}

impl Costs for Broken {
    fn bill(&self, question: Question) -> Answer<'_, Bill> {
        Box::pin(async move {
            let mut bill = self.books().bill(question).await?;
            if self.is_in_image(Quirk::ImageLacksSomeCosts) {
                bill.lines.pop();
            }
            Ok(bill)
        })
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> Answer<'_, usize> {
        let mut retention = retention;
        if self.is(Quirk::SweepTakesYoungCosts) && retention.ended_before > Time::ZERO {
            retention.ended_before = Time::MAX;
        }
        if self.is(Quirk::SweepCostsUnbounded) {
            retention.most = usize::MAX;
        }
        self.books().sweep_costs(owner, retention)
    }

    fn keep_standings(&self, owner: Ownership, standings: Vec<Standing>) -> Answer<'_, ()> {
        let latest = self.notes.lock().unwrap().latest;
        let owner = if self.is(Quirk::StandingsIgnoreEpoch) { latest.unwrap_or(owner) } else { owner };
        Box::pin(async move {
            let known = self.books().standings(owner.partition).await?;
            let is_known = |standing: &Standing| known.iter().any(|known| known.name == standing.name);
            let mut standings = standings;
            standings.retain(|standing| !self.is(Quirk::StandingsStay) || !is_known(standing));
            self.books().keep_standings(owner, standings).await
        })
    }

    fn standings(&self, partition: Partition) -> Answer<'_, Vec<Standing>> {
        self.books().standings(partition)
    }
}
