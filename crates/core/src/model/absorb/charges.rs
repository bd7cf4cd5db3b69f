//! Charges as the model keeps them: equal charges are stored once, and an estimate is clamped to
//! what its limit can hold.

use std::sync::Arc;

use super::super::Model;
use super::super::entry::{Charges, Cost, EntryIx};
use super::super::limit::LimitIx;
use crate::operation::Charge;

/// The maximum number of distinct charge sets that are shared.
const CHARGE_SETS_MAX: usize = 1_024;

impl Model {
    /// Interns charges: equal ones are stored once, as long as there are not too many distinct
    /// ones.
    pub(in crate::model) fn intern_charges(&mut self, charges: &[Charge]) -> Charges {
        let place = |charge: &Charge| {
            let cost = Cost { micro: charge.cost, estimated: charge.estimated };
            Some((*self.by_limit.get(&charge.limit)?, cost))
        };
        let charges: Charges = charges.iter().filter_map(place).collect();
        self.share_charges(charges)
    }

    fn share_charges(&mut self, charges: Charges) -> Charges {
        if let Some(known) = self.charge_sets.get(&charges) {
            return Arc::clone(known);
        }
        if self.charge_sets.len() >= CHARGE_SETS_MAX {
            self.charge_sets.clear();
        }
        self.charge_sets.insert(Arc::clone(&charges));
        charges
    }

    /// Clamps an estimate to what the limit can hold now; the clamped amount is what is settled
    /// later. Every cost of a poll is an estimate.
    pub(in crate::model) fn clamp_charges(&mut self, ix: EntryIx, is_poll: bool) {
        let charges = &self.entries[ix.at()].charges;
        let fitting = |(limit, cost): &(LimitIx, Cost)| {
            self.limits[limit.at()].clamp_cost(if is_poll { cost.of_poll() } else { *cost })
        };
        if charges.iter().all(|charge| fitting(charge) == charge.1.micro) {
            return;
        }
        let cut =
            charges.iter().map(|charge| (charge.0, Cost { micro: fitting(charge), ..charge.1 })).collect();
        self.entries[ix.at()].charges = self.share_charges(cut);
    }
}
