//! The content of commands: drafts, verdicts, hints, figures of limits.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::breaker::CooldownLadder;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::{DedupeEntry, MICRO};
use tidegate_core::{
    Alternative, Alternatives, Charge, Draft, Fault, FaultClass, Hint, OnFailure, OnUnknown, PickStrategy,
    Time, UnknownSubmit, Verdict,
};

use super::command::REMOTE_KINDS;
use crate::rng::TestRng;
use crate::samples::maybe;

/// The limits that commands name.
pub(super) const LIMITS: [&str; 5] = ["drip", "window", "gate", "cap", "breaker"];

/// The verdict on an attempt: mostly success.
pub(super) fn verdict(dice: &mut TestRng) -> Verdict {
    let fault = Fault::new(*dice.pick(&FaultClass::ALL), "it went wrong");
    let after = maybe(dice, |dice| Duration::from_millis(dice.below(5_000)));
    match dice.below(17) {
        0..5 => Verdict::Done,
        12..16 => {
            let poll_after = maybe(dice, |dice| Duration::from_millis(dice.below(10_000)));
            Verdict::Accepted { poll_after, timeout: Duration::from_secs(dice.below(60)) }
        }
        5 | 6 => {
            let scope = maybe(dice, |dice| Arc::from(*dice.pick(&LIMITS)));
            Verdict::Throttled { after, scope, fault }
        }
        7 | 8 => Verdict::Retry { after, fault },
        9 => Verdict::Rejected(fault),
        10 => Verdict::Unknown(fault),
        16 => Verdict::Lost(fault),
        _ if dice.percent(50) => Verdict::Returned,
        _ => Verdict::Canceled { may_have_happened: dice.percent(50) },
    }
}

/// An operation that charges up to two limits, some of which may not exist.
pub(super) fn draft(dice: &mut TestRng, group: Arc<str>, now: Time) -> Draft {
    let soon = |dice: &mut TestRng| now.after(Duration::from_millis(dice.below(20_000)));
    let charges = charges(dice);
    let alternatives = if dice.percent(40) { Some(alternatives(dice)) } else { None };
    // What an alternative charges may not be charged apart from it.
    let charges = if alternatives.is_some() { Vec::new() } else { charges };
    Draft {
        charges,
        alternatives,
        deadline: if dice.percent(20) { Some(soon(dice)) } else { None },
        not_before: if dice.percent(15) { Some(soon(dice)) } else { None },
        max_attempts: dice.within(1..4) as u16,
        priority: if dice.percent(20) { dice.below(5) as u8 } else { 0 },
        on_unknown: *dice.pick(&[OnUnknown::Repeat, OnUnknown::Reconcile, OnUnknown::Ask]),
        on_failure: *dice.pick(&[OnFailure::Skip, OnFailure::Hold]),
        dedupe: if dice.percent(30) { Some(dedupe(dice, now)) } else { None },
        ..Draft::new(group, *dice.pick(&["kind", "kind", REMOTE_KINDS[0], REMOTE_KINDS[1]]))
    }
}

/// Charges of up to two limits.
fn charges(dice: &mut TestRng) -> Vec<Charge> {
    let (first, count) = (dice.index(LIMITS.len()), dice.index(3));
    let charge = |place: usize| {
        let (limit, cost) = (LIMITS[(first + place) % LIMITS.len()].into(), dice.below(4 * MICRO));
        Charge { limit, cost, estimated: cost % 3 == 0 }
    };
    (0..count).map(charge).collect()
}

/// Up to three alternatives, with a few lists that return often, so that groups share them.
fn alternatives(dice: &mut TestRng) -> Alternatives {
    let wait = UnknownSubmit::Wait { timeout: Duration::from_secs(dice.below(60)) };
    let strategies = [
        PickStrategy::Chain,
        PickStrategy::Weighted,
        PickStrategy::LeastBusy,
        PickStrategy::Fastest,
        PickStrategy::Cheapest,
    ];
    let known: [&[&str]; 3] = [&["cap", "breaker"], &["drip", "window", "gate"], &["breaker", "gate", "cap"]];
    let simple = |limit: &&str| Alternative::new(*limit, vec![Charge::tokens(*limit, 1)]);
    let list = if dice.percent(60) {
        known[dice.index(known.len())].iter().map(simple).collect()
    } else {
        let count = dice.within(1..4) as usize;
        let alternative = |name: &str| Alternative {
            weight: dice.below(3) as u32,
            price: dice.below(3),
            ..Alternative::new(name, charges(dice))
        };
        ["a", "b", "c"].into_iter().take(count).map(alternative).collect()
    };
    let strategy = *dice.pick(&strategies);
    Alternatives {
        list,
        strategy,
        on_unknown: *dice.pick(&[wait, UnknownSubmit::Failover, UnknownSubmit::Fail]),
    }
}

/// Figures for a limit, which always keeps its kind.
pub(super) fn shape(dice: &mut TestRng, limit: &str) -> LimitShape {
    match limit {
        "drip" => LimitShape::Drip {
            capacity: dice.within(2..9) * MICRO,
            refill_per_s: dice.within(1..3_000_000),
            margin: dice.below(MICRO),
        },
        "window" if dice.percent(30) => LimitShape::Window { limit: 0, period: Duration::ZERO },
        "window" => {
            let period = Duration::from_millis(dice.within(1..9_000));
            LimitShape::Window { limit: dice.within(1..7) * MICRO, period }
        }
        "gate" => LimitShape::Gate,
        "breaker" => {
            let step = |_| Duration::from_millis(dice.within(1..9_000));
            LimitShape::Breaker { ladder: CooldownLadder([0; 4].map(step)) }
        }
        _ => LimitShape::Cap { at_once: dice.within(1..4) as u32 },
    }
}

fn dedupe(dice: &mut TestRng, now: Time) -> DedupeEntry {
    DedupeEntry {
        key: u128::from(dice.below(4)),
        fingerprint: u128::from(dice.below(2)),
        expires: now.after(Duration::from_millis(dice.below(30_000))),
    }
}

/// A hint about one limit.
pub(super) fn hint(dice: &mut TestRng) -> Hint {
    Hint {
        limit: (*dice.pick(&LIMITS)).into(),
        remaining: maybe(dice, |dice| dice.below(5 * MICRO)),
        capacity: if dice.percent(20) { Some(dice.within(1..9) * MICRO) } else { None },
        refill_per_s: if dice.percent(20) { Some(dice.within(1..4) * MICRO) } else { None },
        reset_at: maybe(dice, |dice| Time::from_millis(1_780_000_000_000 + dice.below(60_000))),
        spent: maybe(dice, |dice| dice.below(3 * MICRO)),
    }
}
