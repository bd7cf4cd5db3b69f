//! Sample facts for tests of the codec: one fixed fact of every variant, and arbitrary ones.

mod arbitrary;

use std::time::Duration;

pub(super) use arbitrary::fact;
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

const AT: Time = Time::from_micros(1_700_000_000_000_001);

fn accepted_once() -> AcceptedOperation {
    AcceptedOperation {
        seq: Seq(7),
        at: AT,
        group: "shop:acme".into(),
        kind: "http".into(),
        charges: vec![Charge::tokens("points", 52)],
        deadline: Some(Time::from_micros(300)),
        not_before: None,
        max_attempts: 8,
        priority: 1,
        on_unknown: OnUnknown::Ask,
        on_failure: OnFailure::Skip,
        dedupe: Some(DedupeEntry { key: 1, fingerprint: u128::MAX, expires: AT }),
        acceptance: Acceptance::New,
    }
}

fn alternatives_once() -> Alternatives {
    let charges = vec![Charge::tokens("acme", 1)];
    let first = Alternative { weight: 300, price: 5, ..Alternative::new("acme", charges) };
    let list = vec![first, Alternative::new("globex", Vec::new())];
    let on_unknown = UnknownSubmit::Wait { timeout: Duration::from_secs(60) };
    Alternatives { list, strategy: PickStrategy::Weighted, on_unknown }
}

fn chain_image_once() -> Fact {
    Fact::ChainImage(Box::new(ChainImage {
        seq: Seq(7),
        alternatives: alternatives_once(),
        picked: Some(("acme".into(), AT)),
        failed: vec![("initech".into(), fault_once())],
    }))
}

fn fault_once() -> Fault {
    Fault::new(FaultClass::Transient, "reset")
}

/// Returns a claim that awaits its completion, always the same.
pub(super) fn settled_as_awaiting() -> Fact {
    let effect = SettleEffect::Awaiting { poll_at: Some(AT), until: Time::from_micros(300) };
    let (fault, hints) = (None, Vec::new());
    Fact::Settled(Box::new(SettledClaim { seq: Seq(7), fence: Fence(300), at: AT, effect, fault, hints }))
}

/// Returns a claim whose alternative failed, always the same.
pub(super) fn settled_as_failed_over() -> Fact {
    let (effect, fault, hints) = (SettleEffect::NextAlternative, None, Vec::new());
    Fact::Settled(Box::new(SettledClaim { seq: Seq(7), fence: Fence(300), at: AT, effect, fault, hints }))
}

/// Returns a breaker that was configured, and the reports that it can get, always the same.
pub(super) fn breaker_facts() -> Vec<Fact> {
    let shape = LimitShape::Breaker { ladder: CooldownLadder::default() };
    let set = Fact::LimitSet { limit: "l".into(), shape, source: LimitSource::Config, at: AT };
    let reports = [BreakerReport::Accepted, BreakerReport::Succeeded, BreakerReport::Failed];
    let reported = reports.map(|report| {
        let (seq, fence, limit) = (Seq(7), Fence(300), "l".into());
        Fact::Reported { seq, fence, at: AT, limit, report }
    });
    std::iter::once(set).chain(reported).collect()
}

/// Returns one fact of every variant, always the same.
pub(super) fn one_of_each() -> Vec<Fact> {
    let (seq, fence) = (Seq(7), Fence(300));
    let hint = Hint { limit: "points".into(), remaining: Some(5), spent: Some(0), ..Hint::default() };
    let effect = SettleEffect::Throttled { until: AT, closed: vec!["points".into()] };
    let mut facts = vec![
        Fact::Accepted(Box::new(accepted_once())),
        Fact::Claimed { seq, fence, at: AT, until: Time::MAX },
        Fact::Renewed { seq, fence, until: AT },
        Fact::Settled(Box::new(SettledClaim {
            seq,
            fence,
            at: AT,
            effect,
            fault: Some(fault_once()),
            hints: vec![hint],
        })),
        Fact::Ended { seq, at: AT, state: EndState::Canceled, hold: true },
        Fact::CancelRequested { seq },
        Fact::Repeated { seq, at: AT },
        Fact::Paused { group: "g".into(), at: AT, by: "ann".into(), reason: "é".into() },
        Fact::Resumed { group: "g".into(), at: AT },
        Fact::LimitSet { limit: "l".into(), shape: LimitShape::Gate, source: LimitSource::Operator, at: AT },
        Fact::Thawed { limit: "l".into(), at: AT },
        Fact::LimitGone { limit: "l".into(), at: AT },
        Fact::Sent { seq, fence, at: AT },
        Fact::Polled { seq, fence, at: AT, until: Time::MAX },
        Fact::Reported {
            seq,
            fence,
            at: AT,
            limit: "l".into(),
            report: BreakerReport::Throttled { until: AT },
        },
    ];
    facts.push(Fact::Chained { seq, alternatives: Box::new(alternatives_once()) });
    facts.push(Fact::Picked { seq, alternative: "acme".into(), at: AT });
    facts.push(Fact::Woken { seq, at: AT });
    facts.push(Fact::Rechained { seq, alternatives: Box::new(alternatives_once()) });
    let fault = Box::new(Fault::new(FaultClass::Transient, "reset").in_doubt());
    facts.push(Fact::Doubted { seq, fault });
    facts.extend(images());
    facts.push(chain_image_once());
    facts
}

fn images() -> [Fact; 8] {
    let (seq, fence) = (Seq(7), Fence(300));
    let held = GroupHold { seq, since: AT, unknown: true, fault: None };
    [
        Fact::Counters(Counters {
            next_seq: seq,
            next_fence: fence,
            next_turn: Turn(9),
            clock: AT,
            ended: [1, 2, 3],
        }),
        Fact::LimitImage(Box::new(LimitImage {
            limit: "l".into(),
            shape: LimitShape::Drip { capacity: 40, refill_per_s: 2, margin: 1 },
            configured: Some(LimitShape::Window { limit: 5, period: Duration::from_millis(1_500) }),
            source: LimitSource::Learned,
            level: 3,
            at: AT,
            carry: 4,
            reset_at: Time::ZERO,
            known: true,
            frozen_until: AT,
            granted: u64::MAX,
            throttles: 6,
            transit: vec![(AT, 7, 8)],
        })),
        Fact::GroupImage(Box::new(GroupImage {
            group: "g".into(),
            turn: Turn(9),
            not_before: Time::ZERO,
            paused: Some(("ann".into(), AT, "why".into())),
            held: Some(held),
            running: Some((fence, AT, vec![1, 2])),
        })),
        Fact::AwaitingImage(AwaitingImage {
            since: AT,
            until: Time::from_micros(300),
            poll_at: Some(AT),
            failed_polls: 2,
            polling: true,
            cancel_sent: false,
        }),
        Fact::PollImage { fence },
        Fact::OperationImage(Box::new(OperationImage {
            accepted: accepted_once(),
            attempt: 2,
            reconcile_first: true,
            cancel_requested: false,
            fault: Some(fault_once()),
        })),
        Fact::ClosureImage {
            limit: "l".into(),
            closure: Box::new(LimitClosure {
                since: Time::ZERO,
                at: AT,
                seq,
                accepted_at: AT,
                fault: Some(fault_once()),
            }),
        },
        Fact::KeyImage { seq, dedupe: DedupeEntry { key: 2, fingerprint: 3, expires: AT } },
    ]
}
