//! What calls cost and how limits stand, in plain lists: gone with the process, as everything here.

use tidegate_core::id::Partition;
use tidegate_store::costs::{Bill, Question, Standing, summed};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Answer, Costs};

use super::{Memory, at_once};

impl Costs for Memory {
    fn bill(&self, question: Question) -> Answer<'_, Bill> {
        at_once(move || Ok(summed(self.partitions().values().flat_map(|kept| &kept.costs), &question)))
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> Answer<'_, usize> {
        at_once(move || {
            let mut partitions = self.partitions();
            let kept = partitions.entry(owner.partition).or_default();
            kept.tenure.check(owner)?;
            let mut gone = 0;
            kept.costs.retain(|cost| {
                let goes = gone < retention.most && cost.at < retention.ended_before;
                gone += usize::from(goes);
                !goes
            });
            Ok(gone)
        })
    }

    fn keep_standings(&self, owner: Ownership, standings: Vec<Standing>) -> Answer<'_, ()> {
        at_once(move || {
            let mut partitions = self.partitions();
            let kept = partitions.entry(owner.partition).or_default();
            kept.tenure.check(owner)?;
            kept.standings.extend(standings.into_iter().map(|standing| (standing.name.clone(), standing)));
            Ok(())
        })
    }

    fn standings(&self, partition: Partition) -> Answer<'_, Vec<Standing>> {
        at_once(move || {
            let partitions = self.partitions();
            Ok(partitions
                .get(&partition)
                .map(|kept| kept.standings.values().cloned().collect())
                .unwrap_or_default())
        })
    }
}
