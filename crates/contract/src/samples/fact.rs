//! Facts of every kind, with fields of every size.

use std::time::Duration;

use tidegate_core::breaker::{BreakerReport, CooldownLadder};
use tidegate_core::fact::{
    Acceptance, AcceptedOperation, AwaitingImage, ChainImage, Counters, GroupHold, GroupImage, LimitClosure,
    LimitImage, LimitShape, LimitSource, OperationImage, SettleEffect, SettledClaim,
};
use tidegate_core::operation::DedupeEntry;
use tidegate_core::{
    Alternative, Alternatives, Charge, Fact, Fault, FaultClass, Fence, Hint, OnFailure, OnUnknown,
    PickStrategy, Seq, Turn, UnknownSubmit,
};

use super::{end_state, fault, maybe, name, number, some, time};
use crate::rng::TestRng;

/// A fact of any kind.
pub fn fact(rng: &mut TestRng) -> Fact {
    match rng.below(27) {
        0 => Fact::Accepted(Box::new(accepted(rng))),
        1 => Fact::Claimed { seq: seq(rng), fence: fence(rng), at: time(rng), until: time(rng) },
        2 => Fact::Renewed { seq: seq(rng), fence: fence(rng), until: time(rng) },
        3 => Fact::Settled(Box::new(settled(rng))),
        4 => Fact::Ended { seq: seq(rng), at: time(rng), state: end_state(rng), hold: rng.percent(50) },
        5 => Fact::CancelRequested { seq: seq(rng) },
        6 => Fact::Repeated { seq: seq(rng), at: time(rng) },
        7 => Fact::Paused { group: name(rng), at: time(rng), by: name(rng), reason: name(rng) },
        8 => Fact::Resumed { group: name(rng), at: time(rng) },
        9 => Fact::LimitSet { limit: name(rng), shape: shape(rng), source: source(rng), at: time(rng) },
        10 => Fact::Thawed { limit: name(rng), at: time(rng) },
        11 => Fact::Counters(counters(rng)),
        12 => Fact::LimitImage(Box::new(limit_image(rng))),
        13 => Fact::GroupImage(Box::new(group_image(rng))),
        14 => Fact::OperationImage(Box::new(operation_image(rng))),
        15 => Fact::Polled { seq: seq(rng), fence: fence(rng), at: time(rng), until: time(rng) },
        16 => Fact::AwaitingImage(awaiting_image(rng)),
        17 => Fact::Reported {
            seq: seq(rng),
            fence: fence(rng),
            at: time(rng),
            limit: name(rng),
            report: report(rng),
        },
        18 => Fact::Chained { seq: seq(rng), alternatives: Box::new(alternatives(rng)) },
        19 => Fact::Picked { seq: seq(rng), alternative: name(rng), at: time(rng) },
        20 => Fact::ChainImage(Box::new(chain_image(rng))),
        21 => Fact::PollImage { fence: fence(rng) },
        22 => Fact::Woken { seq: seq(rng), at: time(rng) },
        24 => {
            let fault = fault(rng).unwrap_or_else(|| Fault::new(FaultClass::Transient, "cut"));
            Fact::Doubted { seq: seq(rng), fault: Box::new(fault) }
        }
        25 => Fact::ClosureImage { limit: name(rng), closure: Box::new(closure(rng)) },
        23 => Fact::Rechained { seq: seq(rng), alternatives: Box::new(alternatives(rng)) },
        _ => Fact::KeyImage { seq: seq(rng), dedupe: dedupe(rng) },
    }
}

fn seq(rng: &mut TestRng) -> Seq {
    Seq(number(rng))
}

fn fence(rng: &mut TestRng) -> Fence {
    Fence(number(rng))
}

fn accepted(rng: &mut TestRng) -> AcceptedOperation {
    AcceptedOperation {
        seq: seq(rng),
        at: time(rng),
        group: name(rng),
        kind: name(rng),
        charges: some(rng, 3, charge),
        deadline: maybe(rng, time),
        not_before: maybe(rng, time),
        max_attempts: number(rng) as u16,
        priority: rng.below(5) as u8,
        on_unknown: *rng.pick(&[OnUnknown::Repeat, OnUnknown::Reconcile, OnUnknown::Ask]),
        on_failure: *rng.pick(&[OnFailure::Skip, OnFailure::Hold]),
        dedupe: maybe(rng, dedupe),
        acceptance: *rng.pick(&[Acceptance::New, Acceptance::New, Acceptance::Rerun, Acceptance::RerunFirst]),
    }
}

fn charge(rng: &mut TestRng) -> Charge {
    Charge { limit: name(rng), cost: number(rng) / 2, estimated: rng.index(2) == 0 }
}

fn alternatives(rng: &mut TestRng) -> Alternatives {
    let alternative = |rng: &mut TestRng| Alternative {
        name: name(rng),
        charges: some(rng, 2, charge),
        weight: number(rng) as u32,
        price: number(rng),
    };
    let timeout = Duration::from_micros(number(rng));
    let wait = UnknownSubmit::Wait { timeout };
    Alternatives {
        list: some(rng, 3, alternative),
        strategy: *rng.pick(&[
            PickStrategy::Chain,
            PickStrategy::Weighted,
            PickStrategy::LeastBusy,
            PickStrategy::Fastest,
            PickStrategy::Cheapest,
        ]),
        on_unknown: *rng.pick(&[wait, UnknownSubmit::Failover, UnknownSubmit::Fail]),
    }
}

fn chain_image(rng: &mut TestRng) -> ChainImage {
    ChainImage {
        seq: seq(rng),
        alternatives: alternatives(rng),
        picked: maybe(rng, |rng| (name(rng), time(rng))),
        failed: some(rng, 2, |rng| (name(rng), Fault::new(FaultClass::Transient, "it failed"))),
    }
}

fn dedupe(rng: &mut TestRng) -> DedupeEntry {
    let wide = |rng: &mut TestRng| (u128::from(rng.roll()) << 64) | u128::from(rng.roll());
    DedupeEntry { key: wide(rng), fingerprint: wide(rng), expires: time(rng) }
}

fn settled(rng: &mut TestRng) -> SettledClaim {
    let after = match rng.below(7) {
        0 => SettleEffect::Ended { state: end_state(rng), hold: rng.percent(50) },
        1 => SettleEffect::Retry { at: time(rng), reconcile_first: rng.percent(50) },
        2 => SettleEffect::Throttled { closed: some(rng, 2, name), until: time(rng) },
        3 => SettleEffect::Held,
        4 => SettleEffect::Awaiting { poll_at: maybe(rng, time), until: time(rng) },
        5 => SettleEffect::NextAlternative,
        _ => SettleEffect::Returned,
    };
    SettledClaim {
        seq: seq(rng),
        fence: fence(rng),
        at: time(rng),
        effect: after,
        fault: fault(rng),
        hints: some(rng, 2, hint),
    }
}

fn closure(rng: &mut TestRng) -> LimitClosure {
    let (since, at, accepted_at) = (time(rng), time(rng), time(rng));
    LimitClosure { since, at, seq: seq(rng), accepted_at, fault: fault(rng) }
}

fn awaiting_image(rng: &mut TestRng) -> AwaitingImage {
    AwaitingImage {
        since: time(rng),
        until: time(rng),
        poll_at: maybe(rng, time),
        failed_polls: number(rng) as u16,
        polling: rng.percent(50),
        cancel_sent: rng.percent(50),
    }
}

fn hint(rng: &mut TestRng) -> Hint {
    Hint {
        limit: name(rng),
        remaining: maybe(rng, number),
        capacity: maybe(rng, number),
        refill_per_s: maybe(rng, number),
        reset_at: maybe(rng, time),
        spent: maybe(rng, number),
    }
}

fn shape(rng: &mut TestRng) -> LimitShape {
    match rng.below(5) {
        0 => LimitShape::Drip { capacity: number(rng), refill_per_s: number(rng), margin: number(rng) },
        1 => LimitShape::Window { limit: number(rng), period: Duration::from_micros(number(rng)) },
        2 => LimitShape::Gate,
        3 => {
            let step = |_| Duration::from_micros(number(rng));
            LimitShape::Breaker { ladder: CooldownLadder([0; 4].map(step)) }
        }
        _ => LimitShape::Cap { at_once: number(rng) as u32 },
    }
}

fn report(rng: &mut TestRng) -> BreakerReport {
    match rng.below(4) {
        0 => BreakerReport::Accepted,
        1 => BreakerReport::Succeeded,
        2 => BreakerReport::Failed,
        _ => BreakerReport::Throttled { until: time(rng) },
    }
}

fn source(rng: &mut TestRng) -> LimitSource {
    *rng.pick(&[LimitSource::Config, LimitSource::Operator, LimitSource::Learned])
}

fn counters(rng: &mut TestRng) -> Counters {
    Counters {
        next_seq: seq(rng),
        next_fence: fence(rng),
        next_turn: Turn(number(rng)),
        clock: time(rng),
        ended: [number(rng), number(rng), number(rng)],
    }
}

fn limit_image(rng: &mut TestRng) -> LimitImage {
    LimitImage {
        limit: name(rng),
        shape: shape(rng),
        configured: maybe(rng, shape),
        source: source(rng),
        level: number(rng),
        at: time(rng),
        carry: number(rng),
        reset_at: time(rng),
        known: rng.percent(50),
        frozen_until: time(rng),
        granted: number(rng),
        throttles: number(rng) as u32,
        transit: vec![(time(rng), number(rng), number(rng)); rng.below(3) as usize],
    }
}

fn group_image(rng: &mut TestRng) -> GroupImage {
    let held = |rng: &mut TestRng| GroupHold {
        seq: seq(rng),
        since: time(rng),
        unknown: rng.percent(50),
        fault: fault(rng),
    };
    GroupImage {
        group: name(rng),
        turn: Turn(number(rng)),
        not_before: time(rng),
        paused: maybe(rng, |rng| (name(rng), time(rng), name(rng))),
        held: maybe(rng, held),
        running: maybe(rng, |rng| (fence(rng), time(rng), some(rng, 3, number))),
    }
}

fn operation_image(rng: &mut TestRng) -> OperationImage {
    OperationImage {
        accepted: AcceptedOperation { dedupe: None, ..accepted(rng) },
        attempt: number(rng) as u16,
        reconcile_first: rng.percent(50),
        cancel_requested: rng.percent(50),
        fault: fault(rng),
    }
}
