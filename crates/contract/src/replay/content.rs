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
pub(super) fn verdict(rng: &mut TestRng) -> Verdict {
    let fault = Fault::new(*rng.pick(&FaultClass::ALL), "it went wrong");
    let after = maybe(rng, |rng| Duration::from_millis(rng.below(5_000)));
    match rng.below(18) {
        0..5 => Verdict::Done,
        12..16 => {
            let poll_after = maybe(rng, |rng| Duration::from_millis(rng.below(10_000)));
            Verdict::Accepted { poll_after, timeout: Duration::from_secs(rng.below(60)) }
        }
        5 | 6 => {
            let scope = maybe(rng, |rng| Arc::from(*rng.pick(&LIMITS)));
            Verdict::Throttled { after, scope, fault }
        }
        7 | 8 => Verdict::Retry { after, fault },
        9 => Verdict::Rejected(fault),
        10 => Verdict::Unknown(fault),
        16 => Verdict::Lost(fault),
        17 => Verdict::Unavailable(fault),
        _ if rng.percent(50) => Verdict::Returned,
        _ => Verdict::Canceled { may_have_happened: rng.percent(50) },
    }
}

/// An operation that charges up to two limits, some of which may not exist.
pub(super) fn draft(rng: &mut TestRng, group: Arc<str>, now: Time) -> Draft {
    let soon = |rng: &mut TestRng| now.after(Duration::from_millis(rng.below(20_000)));
    let charges = charges(rng);
    let alternatives = if rng.percent(40) { Some(alternatives(rng)) } else { None };
    // What an alternative charges may not be charged apart from it.
    let charges = if alternatives.is_some() { Vec::new() } else { charges };
    Draft {
        charges,
        alternatives,
        deadline: if rng.percent(20) { Some(soon(rng)) } else { None },
        not_before: if rng.percent(15) { Some(soon(rng)) } else { None },
        max_attempts: rng.within(1..4) as u16,
        priority: if rng.percent(20) { rng.below(5) as u8 } else { 0 },
        on_unknown: *rng.pick(&[OnUnknown::Repeat, OnUnknown::Reconcile, OnUnknown::Ask]),
        on_failure: *rng.pick(&[OnFailure::Skip, OnFailure::Hold]),
        dedupe: if rng.percent(30) { Some(dedupe(rng, now)) } else { None },
        doubt: if rng.percent(30) { Some(Fault::new(FaultClass::Transient, "cut").in_doubt()) } else { None },
        ..Draft::new(group, *rng.pick(&["kind", "kind", REMOTE_KINDS[0], REMOTE_KINDS[1]]))
    }
}

/// Charges of up to two limits.
fn charges(rng: &mut TestRng) -> Vec<Charge> {
    let (first, count) = (rng.index(LIMITS.len()), rng.index(3));
    let charge = |place: usize| {
        let (limit, cost) = (LIMITS[(first + place) % LIMITS.len()].into(), rng.below(4 * MICRO));
        Charge { limit, cost, estimated: cost % 3 == 0 }
    };
    (0..count).map(charge).collect()
}

/// Up to three alternatives, with a few lists that return often, so that groups share them.
pub(super) fn alternatives(rng: &mut TestRng) -> Alternatives {
    let wait = UnknownSubmit::Wait { timeout: Duration::from_secs(rng.below(60)) };
    let strategies = [
        PickStrategy::Chain,
        PickStrategy::Weighted,
        PickStrategy::LeastBusy,
        PickStrategy::Fastest,
        PickStrategy::Cheapest,
    ];
    let known: [&[&str]; 3] = [&["cap", "breaker"], &["drip", "window", "gate"], &["breaker", "gate", "cap"]];
    let simple = |limit: &&str| Alternative::new(*limit, vec![Charge::tokens(*limit, 1)]);
    let list = if rng.percent(60) {
        known[rng.index(known.len())].iter().map(simple).collect()
    } else {
        let count = rng.within(1..4) as usize;
        let alternative = |name: &str| Alternative {
            weight: rng.below(3) as u32,
            price: rng.below(3),
            ..Alternative::new(name, charges(rng))
        };
        ["a", "b", "c"].into_iter().take(count).map(alternative).collect()
    };
    let strategy = *rng.pick(&strategies);
    Alternatives {
        list,
        strategy,
        on_unknown: *rng.pick(&[wait, UnknownSubmit::Failover, UnknownSubmit::Fail]),
    }
}

/// Figures for a limit, which always keeps its kind.
pub(super) fn shape(rng: &mut TestRng, limit: &str) -> LimitShape {
    match limit {
        "drip" => LimitShape::Drip {
            capacity: rng.within(2..9) * MICRO,
            refill_per_s: rng.within(1..3_000_000),
            margin: rng.below(MICRO),
        },
        "window" if rng.percent(30) => LimitShape::Window { limit: 0, period: Duration::ZERO },
        "window" => {
            let period = Duration::from_millis(rng.within(1..9_000));
            LimitShape::Window { limit: rng.within(1..7) * MICRO, period }
        }
        "gate" => LimitShape::Gate,
        "breaker" => {
            let step = |_| Duration::from_millis(rng.within(1..9_000));
            LimitShape::Breaker { ladder: CooldownLadder([0; 4].map(step)) }
        }
        _ => LimitShape::Cap { at_once: rng.within(1..4) as u32 },
    }
}

fn dedupe(rng: &mut TestRng, now: Time) -> DedupeEntry {
    DedupeEntry {
        key: u128::from(rng.below(4)),
        fingerprint: u128::from(rng.below(2)),
        expires: now.after(Duration::from_millis(rng.below(30_000))),
    }
}

/// A hint about one limit.
pub(super) fn hint(rng: &mut TestRng) -> Hint {
    Hint {
        limit: (*rng.pick(&LIMITS)).into(),
        remaining: maybe(rng, |rng| rng.below(5 * MICRO)),
        capacity: if rng.percent(20) { Some(rng.within(1..9) * MICRO) } else { None },
        refill_per_s: if rng.percent(20) { Some(rng.within(1..4) * MICRO) } else { None },
        reset_at: maybe(rng, |rng| Time::from_millis(1_780_000_000_000 + rng.below(60_000))),
        spent: maybe(rng, |rng| rng.below(3 * MICRO)),
    }
}
