//! Several ways to execute one operation: each alternative is a name and what it charges. A take
//! grants the first one, in the order of a strategy, whose charges are all granted at that moment.
//! Strategies are pure functions; chance comes in as an argument.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds;
use crate::fault::{Fault, FaultClass};
use crate::operation::{Charge, InvalidField};
use crate::rng::SeededRng;

/// One way to execute an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Its name, unique among those of an operation.
    pub name: Arc<str>,
    /// What must be granted before it is used, all or nothing.
    pub charges: Vec<Charge>,
    /// Its share of the operations, relative to the others, where the strategy goes by weight.
    pub weight: u32,
    /// What one operation costs, in any unit that all of them share.
    pub price: u64,
}

impl Alternative {
    /// Creates an alternative with a weight of 1 and without a price.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, charges: Vec<Charge>) -> Self {
        Self { name: name.into(), charges, weight: 1, price: 0 }
    }
}

/// The order in which alternatives are tried. Those that a strategy holds for equal are tried in
/// the order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PickStrategy {
    /// As listed.
    #[default]
    Chain,
    /// At random, in proportion to the weights.
    Weighted,
    /// The one with the largest share of free slots first.
    LeastBusy,
    /// The one whose operations took the shortest time lately first.
    Fastest,
    /// The lowest price first.
    Cheapest,
}

/// What follows when an attempt was submitted and it is not known whether it took effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownSubmit {
    /// It keeps its slots and awaits its completion, and is polled; it fails when none came in
    /// time.
    Wait {
        /// How long it waits.
        timeout: Duration,
    },
    /// The next alternative is used: the operation may take effect twice.
    Failover,
    /// The operation fails.
    #[default]
    Fail,
}

/// The alternatives of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternatives {
    /// In the order of preference.
    pub list: Vec<Alternative>,
    /// The order in which they are tried.
    pub strategy: PickStrategy,
    /// What follows an unknown submit.
    pub on_unknown: UnknownSubmit,
}

impl Alternatives {
    /// Checks every field against its bounds.
    ///
    /// # Errors
    /// Describes the first problem.
    pub(crate) fn validate(&self, common: usize) -> Result<(), InvalidField> {
        let wrong = |problem| Err(InvalidField { field: "alternatives", problem });
        if self.list.is_empty() || self.list.len() > bounds::ALTERNATIVES_MAX {
            return wrong("must be 1 to 16");
        }
        for (place, alternative) in self.list.iter().enumerate() {
            let name = &alternative.name;
            if name.is_empty() || name.len() > bounds::UPSTREAM_NAME_LEN_MAX {
                return wrong("must have names of 1 to 64 bytes");
            }
            if self.list[..place].iter().any(|other| other.name == *name) {
                return wrong("must have different names");
            }
            if alternative.charges.len() + common > bounds::CHARGES_MAX {
                return wrong("name too many limits");
            }
        }
        Ok(())
    }
}

/// What is known of an alternative when the order is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlternativeLoad {
    /// Its weight.
    pub weight: u32,
    /// Its price.
    pub price: u64,
    /// How busy it is: the share of its slots that are taken, in thousandths.
    pub busy: u64,
    /// How long its operations took lately; zero when that is not known, so that it is tried.
    pub latency: Duration,
}

/// The order in which alternatives are tried, as indexes.
#[must_use]
pub fn pick_order(strategy: PickStrategy, loads: &[AlternativeLoad], chance: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    match strategy {
        PickStrategy::Chain => {}
        PickStrategy::Weighted => return weighted_order(loads, chance),
        PickStrategy::LeastBusy => order.sort_by_key(|index| loads[*index].busy),
        PickStrategy::Fastest => order.sort_by_key(|index| loads[*index].latency),
        PickStrategy::Cheapest => order.sort_by_key(|index| loads[*index].price),
    }
    order
}

/// Draws one after the other, each in proportion to its weight; those without one come last.
fn weighted_order(loads: &[AlternativeLoad], chance: u64) -> Vec<usize> {
    let mut chance = SeededRng::new(chance);
    let (mut left, last): (Vec<usize>, Vec<usize>) =
        (0..loads.len()).partition(|index| loads[*index].weight > 0);
    let mut order = Vec::with_capacity(loads.len());
    while !left.is_empty() {
        let sum: u64 = left.iter().map(|index| u64::from(loads[*index].weight)).sum();
        let mut drawn = chance.next() % sum;
        let place = left.iter().position(|index| {
            let weight = u64::from(loads[*index].weight);
            let is_it = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            is_it
        });
        order.push(left.remove(place.unwrap_or(0)));
    }
    order.extend(last);
    order
}

/// The fault of an operation of which every alternative failed: each with its reason, shortened so
/// that all of them fit.
#[must_use]
pub fn all_failed(reasons: &[(Arc<str>, Fault)]) -> Fault {
    const INTRO: &str = "every alternative failed: ";
    const BETWEEN: &str = "; ";
    let class = reasons.last().map_or(FaultClass::Transient, |(_, fault)| fault.class);
    let room = bounds::FAULT_MESSAGE_LEN_MAX - INTRO.len();
    let share = (room / reasons.len().max(1)).saturating_sub(BETWEEN.len());
    let may_have_happened = reasons.iter().any(|(_, fault)| fault.may_have_happened);
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(name, fault)| {
            let mut reason = format!("{name}: {}", fault.message.trim_end_matches('.'));
            if reason.len() > share {
                reason.truncate(reason.floor_char_boundary(share - '…'.len_utf8()));
                reason.push('…');
            }
            reason
        })
        .collect();
    Fault { may_have_happened, ..Fault::new(class, format!("{INTRO}{}", reasons.join(BETWEEN))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(weight: u32, price: u64, busy: u64, latency_ms: u64) -> AlternativeLoad {
        AlternativeLoad { weight, price, busy, latency: Duration::from_millis(latency_ms) }
    }

    /// DSP-25: each strategy goes by its own figure, and by the list where that is equal.
    #[test]
    fn dsp_25_strategies_order_alternatives() {
        let loads = [load(0, 3, 500, 20), load(0, 1, 900, 10), load(0, 3, 0, 0)];
        let table = [
            (PickStrategy::Chain, [0, 1, 2]),
            (PickStrategy::LeastBusy, [2, 0, 1]),
            (PickStrategy::Fastest, [2, 1, 0]),
            (PickStrategy::Cheapest, [1, 0, 2]),
            (PickStrategy::Weighted, [0, 1, 2]),
        ];
        for (strategy, order) in table {
            assert_eq!(pick_order(strategy, &loads, 7), order, "{strategy:?}");
        }
    }

    /// DSP-25: weights are met over many draws, in the first place and behind it.
    #[test]
    fn dsp_25_weights_are_met() {
        let loads = [load(0, 0, 0, 0), load(1, 0, 0, 0), load(3, 0, 0, 0), load(6, 0, 0, 0)];
        let (mut first, mut second) = ([0_u32; 4], 0_u32);
        for chance in 0..10_000 {
            let order = pick_order(PickStrategy::Weighted, &loads, chance);
            first[order[0]] += 1;
            second += u32::from(order[0] == 3 && order[1] == 2);
            assert_eq!(order[3], 0, "without a weight it comes last");
        }
        assert!(first[0] == 0 && first[1].abs_diff(1_000) < 150, "{first:?}");
        assert!(first[2].abs_diff(3_000) < 200 && first[3].abs_diff(6_000) < 200, "{first:?}");
        assert!(second.abs_diff(4_500) < 200, "three of four times the second: {second}");
    }

    /// DSP-9: every reason is there, however long each of them is.
    #[test]
    fn dsp_9_every_reason_is_kept() {
        let reason = |name: &str, message: &str| {
            (Arc::from(name), Fault::new(FaultClass::Transient, message.to_owned()))
        };
        let two = [reason("acme", "503."), reason("globex", "refused")];
        assert_eq!(all_failed(&two).message, "every alternative failed: acme: 503; globex: refused");
        let doubted = [two[0].clone(), (Arc::from("globex"), two[1].1.clone().in_doubt())];
        assert!(!all_failed(&two).may_have_happened && all_failed(&doubted).may_have_happened);
        let names: Vec<String> = (0..bounds::ALTERNATIVES_MAX).map(|n| format!("provider-{n}")).collect();
        let long: Vec<_> = names.iter().map(|name| reason(name, &"é".repeat(900))).collect();
        let fault = all_failed(&long);
        assert!(fault.message.len() <= bounds::FAULT_MESSAGE_LEN_MAX);
        assert!(names.iter().all(|name| fault.message.contains(&format!("{name}: é"))), "{fault}");
    }

    #[test]
    fn alternatives_are_within_bounds() {
        let named = |names: &[&str]| Alternatives {
            list: names.iter().map(|name| Alternative::new(*name, Vec::new())).collect(),
            ..Alternatives::default()
        };
        assert_eq!(named(&["a", "b"]).validate(0), Ok(()));
        for wrong in [named(&[]), named(&["a"; 17]), named(&["a", "a"]), named(&[""])] {
            assert_eq!(wrong.validate(0).unwrap_err().field, "alternatives");
        }
        let charges = vec![Charge::tokens("l", 1); bounds::CHARGES_MAX];
        let full = Alternatives { list: vec![Alternative::new("a", charges)], ..Alternatives::default() };
        assert_eq!((full.validate(0).is_ok(), full.validate(1).is_ok()), (true, false));
    }
}
