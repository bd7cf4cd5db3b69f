//! Strategies for arbitrary facts, field by field.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use tidegate_core::breaker::{BreakerReport, CooldownLadder};
use tidegate_core::fact::{
    Acceptance, AcceptedOperation, AwaitingImage, ChainImage, Counters, GroupHold, GroupImage, LimitClosure,
    LimitImage, LimitShape, LimitSource, OperationImage, SettleEffect, SettledClaim,
};
use tidegate_core::operation::{Charge, DedupeEntry, OnFailure, OnUnknown};
use tidegate_core::{
    Alternative, Alternatives, EndState, Fact, Fault, FaultClass, Fence, Hint, PickStrategy, Seq, Time, Turn,
    UnknownSubmit,
};

fn text() -> impl Strategy<Value = Arc<str>> {
    ".{0,12}".prop_map(Arc::from)
}

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time::from_micros)
}

fn fault() -> impl Strategy<Value = Fault> {
    (0..FaultClass::ALL.len(), ".{0,20}", any::<bool>()).prop_map(|(class, message, may_have_happened)| {
        Fault { class: FaultClass::ALL[class], message, may_have_happened }
    })
}

fn dedupe() -> impl Strategy<Value = DedupeEntry> {
    (any::<u128>(), any::<u128>(), time()).prop_map(|(key, fingerprint, expires)| DedupeEntry {
        key,
        fingerprint,
        expires,
    })
}

fn end() -> impl Strategy<Value = EndState> {
    prop_oneof![Just(EndState::Succeeded), Just(EndState::Failed), Just(EndState::Canceled)]
}

fn shape() -> impl Strategy<Value = LimitShape> {
    prop_oneof![
        any::<(u64, u64, u64)>().prop_map(|(capacity, refill_per_s, margin)| LimitShape::Drip {
            capacity,
            refill_per_s,
            margin
        }),
        (any::<u64>(), any::<Duration>()).prop_map(|(limit, period)| LimitShape::Window { limit, period }),
        Just(LimitShape::Gate),
        any::<u32>().prop_map(|at_once| LimitShape::Cap { at_once }),
        any::<[Duration; 4]>().prop_map(|steps| LimitShape::Breaker { ladder: CooldownLadder(steps) }),
    ]
}

fn report() -> impl Strategy<Value = BreakerReport> {
    prop_oneof![
        Just(BreakerReport::Accepted),
        Just(BreakerReport::Succeeded),
        Just(BreakerReport::Failed),
        time().prop_map(|until| BreakerReport::Throttled { until }),
    ]
}

fn source() -> impl Strategy<Value = LimitSource> {
    prop_oneof![Just(LimitSource::Config), Just(LimitSource::Operator), Just(LimitSource::Learned)]
}

fn hint() -> impl Strategy<Value = Hint> {
    (text(), of(any::<u64>()), of(any::<u64>()), of(any::<u64>()), of(time()), of(any::<u64>())).prop_map(
        |(limit, remaining, capacity, refill_per_s, reset_at, spent)| Hint {
            limit,
            remaining,
            capacity,
            refill_per_s,
            reset_at,
            spent,
        },
    )
}

fn charge() -> impl Strategy<Value = Charge> {
    let charge = (text(), 0..u64::MAX / 2, any::<bool>());
    charge.prop_map(|(limit, cost, estimated)| Charge { limit, cost, estimated })
}

fn alternatives() -> impl Strategy<Value = Alternatives> {
    let alternative = (text(), vec(charge(), 0..3), any::<u32>(), any::<u64>());
    let alternative =
        alternative.prop_map(|(name, charges, weight, price)| Alternative { name, charges, weight, price });
    let strategy = prop_oneof![
        Just(PickStrategy::Chain),
        Just(PickStrategy::Weighted),
        Just(PickStrategy::LeastBusy),
        Just(PickStrategy::Fastest),
        Just(PickStrategy::Cheapest),
    ];
    let on_unknown = prop_oneof![
        any::<Duration>().prop_map(|timeout| UnknownSubmit::Wait { timeout }),
        Just(UnknownSubmit::Failover),
        Just(UnknownSubmit::Fail),
    ];
    (vec(alternative, 0..4), strategy, on_unknown).prop_map(|(list, strategy, on_unknown)| Alternatives {
        list,
        strategy,
        on_unknown,
    })
}

fn chain_image() -> impl Strategy<Value = ChainImage> {
    let failed = vec((text(), fault()), 0..3);
    (seq(), alternatives(), of((text(), time())), failed)
        .prop_map(|(seq, alternatives, picked, failed)| ChainImage { seq, alternatives, picked, failed })
}

fn accepted() -> impl Strategy<Value = AcceptedOperation> {
    let unknown = prop_oneof![Just(OnUnknown::Repeat), Just(OnUnknown::Reconcile), Just(OnUnknown::Ask)];
    let failure = prop_oneof![Just(OnFailure::Skip), Just(OnFailure::Hold)];
    let names = (any::<u64>(), time(), text(), text(), vec(charge(), 0..4));
    let budget = (of(time()), of(time()), any::<u16>(), any::<u8>());
    (names, budget, unknown, failure, of(dedupe()), acceptance()).prop_map(
        |(names, budget, on_unknown, on_failure, dedupe, acceptance)| {
            let (seq, at, group, kind, charges) = names;
            let (deadline, not_before, max_attempts, priority) = budget;
            AcceptedOperation {
                seq: Seq(seq),
                at,
                group,
                kind,
                charges,
                deadline,
                not_before,
                max_attempts,
                priority,
                on_unknown,
                on_failure,
                dedupe,
                acceptance,
            }
        },
    )
}

fn acceptance() -> impl Strategy<Value = Acceptance> {
    prop_oneof![Just(Acceptance::New), Just(Acceptance::Rerun), Just(Acceptance::RerunFirst)]
}

fn settled() -> impl Strategy<Value = SettledClaim> {
    let after = prop_oneof![
        (end(), any::<bool>()).prop_map(|(state, hold)| SettleEffect::Ended { state, hold }),
        (time(), any::<bool>()).prop_map(|(at, reconcile_first)| SettleEffect::Retry { at, reconcile_first }),
        (time(), vec(text(), 0..4)).prop_map(|(until, closed)| SettleEffect::Throttled { until, closed }),
        Just(SettleEffect::Held),
        Just(SettleEffect::Returned),
        Just(SettleEffect::NextAlternative),
        (of(time()), time()).prop_map(|(poll_at, until)| SettleEffect::Awaiting { poll_at, until }),
    ];
    (any::<(u64, u64)>(), time(), after, of(fault()), vec(hint(), 0..3)).prop_map(
        |((seq, fence), at, after, fault, hints)| SettledClaim {
            seq: Seq(seq),
            fence: Fence(fence),
            at,
            effect: after,
            fault,
            hints,
        },
    )
}

fn limit_image() -> impl Strategy<Value = LimitImage> {
    let state = (any::<u64>(), time(), any::<u64>(), time(), any::<bool>(), time());
    (text(), shape(), of(shape()), source(), state, any::<u64>(), any::<u32>()).prop_map(
        |(limit, shape, configured, source, state, granted, throttles)| {
            let (level, at, carry, reset_at, known, frozen_until) = state;
            LimitImage {
                limit,
                shape,
                configured,
                source,
                level,
                at,
                carry,
                reset_at,
                known,
                frozen_until,
                granted,
                throttles,
                transit: vec![(at, granted, carry); (granted % 3) as usize],
            }
        },
    )
}

fn group_image() -> impl Strategy<Value = GroupImage> {
    let held = (any::<u64>(), time(), any::<bool>(), of(fault()))
        .prop_map(|(seq, since, unknown, fault)| GroupHold { seq: Seq(seq), since, unknown, fault });
    let running = (any::<u64>(), time(), vec(any::<u64>(), 0..4))
        .prop_map(|(f, until, marks)| (Fence(f), until, marks));
    (text(), any::<u64>(), time(), of((text(), time(), text())), of(held), of(running)).prop_map(
        |(group, turn, not_before, paused, held, running)| GroupImage {
            group,
            turn: Turn(turn),
            not_before,
            paused,
            held,
            running,
        },
    )
}

fn closure() -> impl Strategy<Value = LimitClosure> {
    (time(), time(), seq(), time(), of(fault()))
        .prop_map(|(since, at, seq, accepted_at, fault)| LimitClosure { since, at, seq, accepted_at, fault })
}

fn awaiting_image() -> impl Strategy<Value = AwaitingImage> {
    (time(), time(), of(time()), any::<u16>(), any::<(bool, bool)>()).prop_map(
        |(since, until, poll_at, failed_polls, (polling, cancel_sent))| AwaitingImage {
            since,
            until,
            poll_at,
            failed_polls,
            polling,
            cancel_sent,
        },
    )
}

fn operation_image() -> impl Strategy<Value = OperationImage> {
    (accepted(), any::<u16>(), any::<bool>(), any::<bool>(), of(fault())).prop_map(
        |(accepted, attempt, look_first, cancel_asked, fault)| OperationImage {
            accepted,
            attempt,
            reconcile_first: look_first,
            cancel_requested: cancel_asked,
            fault,
        },
    )
}

fn counters() -> impl Strategy<Value = Counters> {
    (any::<(u64, u64, u64)>(), time(), any::<[u64; 3]>()).prop_map(|((seq, fence, turn), clock, ended)| {
        Counters { next_seq: Seq(seq), next_fence: Fence(fence), next_turn: Turn(turn), clock, ended }
    })
}

fn seq() -> impl Strategy<Value = Seq> {
    any::<u64>().prop_map(Seq)
}

/// An arbitrary fact.
pub(in crate::codec) fn fact() -> impl Strategy<Value = Fact> {
    let fence = || any::<u64>().prop_map(Fence);
    prop_oneof![
        accepted().prop_map(|a| Fact::Accepted(Box::new(a))),
        (seq(), fence(), time(), time()).prop_map(|(seq, fence, at, until)| Fact::Claimed {
            seq,
            fence,
            at,
            until
        }),
        (seq(), fence(), time()).prop_map(|(seq, fence, until)| Fact::Renewed { seq, fence, until }),
        settled().prop_map(|s| Fact::Settled(Box::new(s))),
        (seq(), time(), end(), any::<bool>()).prop_map(|(seq, at, state, hold)| Fact::Ended {
            seq,
            at,
            state,
            hold
        }),
        seq().prop_map(|seq| Fact::CancelRequested { seq }),
        (seq(), time()).prop_map(|(seq, at)| Fact::Repeated { seq, at }),
        (seq(), time()).prop_map(|(seq, at)| Fact::Woken { seq, at }),
        (text(), time(), text(), text()).prop_map(|(group, at, by, reason)| Fact::Paused {
            group,
            at,
            by,
            reason
        }),
        (text(), time()).prop_map(|(group, at)| Fact::Resumed { group, at }),
        (text(), shape(), source(), time()).prop_map(|(limit, shape, source, at)| Fact::LimitSet {
            limit,
            shape,
            source,
            at
        }),
        (text(), time()).prop_map(|(limit, at)| Fact::Thawed { limit, at }),
        (text(), time()).prop_map(|(limit, at)| Fact::LimitGone { limit, at }),
        (any::<(u64, u64)>(), time()).prop_map(|((seq, fence), at)| Fact::Sent {
            seq: Seq(seq),
            fence: Fence(fence),
            at
        }),
        (any::<(u64, u64)>(), time(), time()).prop_map(|((seq, fence), at, until)| Fact::Polled {
            seq: Seq(seq),
            fence: Fence(fence),
            at,
            until
        }),
        (any::<(u64, u64)>(), time(), text(), report()).prop_map(|((seq, fence), at, limit, report)| {
            Fact::Reported { seq: Seq(seq), fence: Fence(fence), at, limit, report }
        }),
        (seq(), alternatives()).prop_map(|(seq, list)| Fact::Chained { seq, alternatives: Box::new(list) }),
        (seq(), alternatives()).prop_map(|(seq, list)| Fact::Rechained { seq, alternatives: Box::new(list) }),
        (seq(), fault()).prop_map(|(seq, fault)| Fact::Doubted { seq, fault: Box::new(fault) }),
        (seq(), text(), time()).prop_map(|(seq, alternative, at)| Fact::Picked { seq, alternative, at }),
        chain_image().prop_map(|image| Fact::ChainImage(Box::new(image))),
        counters().prop_map(Fact::Counters),
        limit_image().prop_map(|image| Fact::LimitImage(Box::new(image))),
        (text(), closure())
            .prop_map(|(limit, closure)| Fact::ClosureImage { limit, closure: Box::new(closure) }),
        group_image().prop_map(|image| Fact::GroupImage(Box::new(image))),
        awaiting_image().prop_map(Fact::AwaitingImage),
        any::<u64>().prop_map(|fence| Fact::PollImage { fence: Fence(fence) }),
        operation_image().prop_map(|image| Fact::OperationImage(Box::new(image))),
        (seq(), dedupe()).prop_map(|(seq, dedupe)| Fact::KeyImage { seq, dedupe }),
    ]
}
