//! Facts of every kind, with fields of every size.

use std::time::Duration;

use tidegate_core::breaker::{BreakerReport, CooldownLadder};
use tidegate_core::fact::{
    AcceptedOperation, AwaitingImage, ChainImage, Counters, GroupHold, GroupImage, LimitImage, LimitShape,
    LimitSource, OperationImage, SettleEffect, SettledClaim,
};
use tidegate_core::operation::DedupeEntry;
use tidegate_core::{
    Alternative, Alternatives, Charge, Fact, Fault, FaultClass, Fence, Hint, OnFailure, OnUnknown,
    PickStrategy, Seq, Turn, UnknownSubmit,
};

use super::{end_state, fault, maybe, name, number, some, time};
use crate::rng::TestRng;

/// A fact of any kind.
pub fn fact(dice: &mut TestRng) -> Fact {
    match dice.below(24) {
        0 => Fact::Accepted(Box::new(accepted(dice))),
        1 => Fact::Claimed { seq: seq(dice), fence: fence(dice), at: time(dice), until: time(dice) },
        2 => Fact::Renewed { seq: seq(dice), fence: fence(dice), until: time(dice) },
        3 => Fact::Settled(Box::new(settled(dice))),
        4 => Fact::Ended { seq: seq(dice), at: time(dice), state: end_state(dice), hold: dice.percent(50) },
        5 => Fact::CancelRequested { seq: seq(dice) },
        6 => Fact::Repeated { seq: seq(dice), at: time(dice) },
        7 => Fact::Paused { group: name(dice), at: time(dice), by: name(dice), reason: name(dice) },
        8 => Fact::Resumed { group: name(dice), at: time(dice) },
        9 => Fact::LimitSet { limit: name(dice), shape: shape(dice), source: source(dice), at: time(dice) },
        10 => Fact::Thawed { limit: name(dice), at: time(dice) },
        11 => Fact::Counters(counters(dice)),
        12 => Fact::LimitImage(Box::new(limit_image(dice))),
        13 => Fact::GroupImage(Box::new(group_image(dice))),
        14 => Fact::OperationImage(Box::new(operation_image(dice))),
        15 => Fact::Polled { seq: seq(dice), fence: fence(dice), at: time(dice), until: time(dice) },
        16 => Fact::AwaitingImage(awaiting_image(dice)),
        17 => Fact::Reported {
            seq: seq(dice),
            fence: fence(dice),
            at: time(dice),
            limit: name(dice),
            report: report(dice),
        },
        18 => Fact::Chained { seq: seq(dice), alternatives: Box::new(alternatives(dice)) },
        19 => Fact::Picked { seq: seq(dice), alternative: name(dice), at: time(dice) },
        20 => Fact::ChainImage(Box::new(chain_image(dice))),
        21 => Fact::PollImage { fence: fence(dice) },
        22 => Fact::Woken { seq: seq(dice), at: time(dice) },
        _ => Fact::KeyImage { seq: seq(dice), dedupe: dedupe(dice) },
    }
}

fn seq(dice: &mut TestRng) -> Seq {
    Seq(number(dice))
}

fn fence(dice: &mut TestRng) -> Fence {
    Fence(number(dice))
}

fn accepted(dice: &mut TestRng) -> AcceptedOperation {
    AcceptedOperation {
        seq: seq(dice),
        at: time(dice),
        group: name(dice),
        kind: name(dice),
        charges: some(dice, 3, charge),
        deadline: maybe(dice, time),
        not_before: maybe(dice, time),
        max_attempts: number(dice) as u16,
        priority: dice.below(5) as u8,
        on_unknown: *dice.pick(&[OnUnknown::Repeat, OnUnknown::Reconcile, OnUnknown::Ask]),
        on_failure: *dice.pick(&[OnFailure::Skip, OnFailure::Hold]),
        dedupe: maybe(dice, dedupe),
        is_rerun: dice.percent(20),
    }
}

fn charge(dice: &mut TestRng) -> Charge {
    Charge { limit: name(dice), cost: number(dice) / 2, estimated: dice.index(2) == 0 }
}

fn alternatives(dice: &mut TestRng) -> Alternatives {
    let alternative = |dice: &mut TestRng| Alternative {
        name: name(dice),
        charges: some(dice, 2, charge),
        weight: number(dice) as u32,
        price: number(dice),
    };
    let timeout = Duration::from_micros(number(dice));
    let wait = UnknownSubmit::Wait { timeout };
    Alternatives {
        list: some(dice, 3, alternative),
        strategy: *dice.pick(&[
            PickStrategy::Chain,
            PickStrategy::Weighted,
            PickStrategy::LeastBusy,
            PickStrategy::Fastest,
            PickStrategy::Cheapest,
        ]),
        on_unknown: *dice.pick(&[wait, UnknownSubmit::Failover, UnknownSubmit::Fail]),
    }
}

fn chain_image(dice: &mut TestRng) -> ChainImage {
    ChainImage {
        seq: seq(dice),
        alternatives: alternatives(dice),
        picked: maybe(dice, |dice| (name(dice), time(dice))),
        failed: some(dice, 2, |dice| (name(dice), Fault::new(FaultClass::Transient, "it failed"))),
    }
}

fn dedupe(dice: &mut TestRng) -> DedupeEntry {
    let wide = |dice: &mut TestRng| (u128::from(dice.roll()) << 64) | u128::from(dice.roll());
    DedupeEntry { key: wide(dice), fingerprint: wide(dice), expires: time(dice) }
}

fn settled(dice: &mut TestRng) -> SettledClaim {
    let after = match dice.below(7) {
        0 => SettleEffect::Ended { state: end_state(dice), hold: dice.percent(50) },
        1 => SettleEffect::Retry { at: time(dice), reconcile_first: dice.percent(50) },
        2 => SettleEffect::Throttled { closed: some(dice, 2, name), until: time(dice) },
        3 => SettleEffect::Held,
        4 => SettleEffect::Awaiting { poll_at: maybe(dice, time), until: time(dice) },
        5 => SettleEffect::NextAlternative,
        _ => SettleEffect::Returned,
    };
    SettledClaim {
        seq: seq(dice),
        fence: fence(dice),
        at: time(dice),
        effect: after,
        fault: fault(dice),
        hints: some(dice, 2, hint),
    }
}

fn awaiting_image(dice: &mut TestRng) -> AwaitingImage {
    AwaitingImage {
        since: time(dice),
        until: time(dice),
        poll_at: maybe(dice, time),
        failed_polls: number(dice) as u16,
        polling: dice.percent(50),
        cancel_sent: dice.percent(50),
    }
}

fn hint(dice: &mut TestRng) -> Hint {
    Hint {
        limit: name(dice),
        remaining: maybe(dice, number),
        capacity: maybe(dice, number),
        refill_per_s: maybe(dice, number),
        reset_at: maybe(dice, time),
        spent: maybe(dice, number),
    }
}

fn shape(dice: &mut TestRng) -> LimitShape {
    match dice.below(5) {
        0 => LimitShape::Drip { capacity: number(dice), refill_per_s: number(dice), margin: number(dice) },
        1 => LimitShape::Window { limit: number(dice), period: Duration::from_micros(number(dice)) },
        2 => LimitShape::Gate,
        3 => {
            let step = |_| Duration::from_micros(number(dice));
            LimitShape::Breaker { ladder: CooldownLadder([0; 4].map(step)) }
        }
        _ => LimitShape::Cap { at_once: number(dice) as u32 },
    }
}

fn report(dice: &mut TestRng) -> BreakerReport {
    match dice.below(4) {
        0 => BreakerReport::Accepted,
        1 => BreakerReport::Succeeded,
        2 => BreakerReport::Failed,
        _ => BreakerReport::Throttled { until: time(dice) },
    }
}

fn source(dice: &mut TestRng) -> LimitSource {
    *dice.pick(&[LimitSource::Config, LimitSource::Operator, LimitSource::Learned])
}

fn counters(dice: &mut TestRng) -> Counters {
    Counters {
        next_seq: seq(dice),
        next_fence: fence(dice),
        next_turn: Turn(number(dice)),
        clock: time(dice),
        ended: [number(dice), number(dice), number(dice)],
    }
}

fn limit_image(dice: &mut TestRng) -> LimitImage {
    LimitImage {
        limit: name(dice),
        shape: shape(dice),
        configured: maybe(dice, shape),
        source: source(dice),
        level: number(dice),
        at: time(dice),
        carry: number(dice),
        reset_at: time(dice),
        known: dice.percent(50),
        frozen_until: time(dice),
        granted: number(dice),
        throttles: number(dice) as u32,
        transit: vec![(time(dice), number(dice), number(dice)); dice.below(3) as usize],
    }
}

fn group_image(dice: &mut TestRng) -> GroupImage {
    let held = |dice: &mut TestRng| GroupHold {
        seq: seq(dice),
        since: time(dice),
        unknown: dice.percent(50),
        fault: fault(dice),
    };
    GroupImage {
        group: name(dice),
        turn: Turn(number(dice)),
        not_before: time(dice),
        paused: maybe(dice, |dice| (name(dice), time(dice), name(dice))),
        held: maybe(dice, held),
        running: maybe(dice, |dice| (fence(dice), time(dice), some(dice, 3, number))),
    }
}

fn operation_image(dice: &mut TestRng) -> OperationImage {
    OperationImage {
        accepted: AcceptedOperation { dedupe: None, ..accepted(dice) },
        attempt: number(dice) as u16,
        reconcile_first: dice.percent(50),
        cancel_requested: dice.percent(50),
        fault: fault(dice),
    }
}
