//! Encodes facts: a record as its fields in order, a choice as its tag and fields. One listing
//! serves both directions, so writing and reading cannot drift apart. Tags and orders are frozen:
//! new ones are only added.

use tidegate_core::breaker::{BreakerReport, CooldownLadder};
use tidegate_core::fact::{
    Acceptance, AcceptedOperation, AwaitingImage, ChainImage, Counters, Fact, GroupHold, GroupImage,
    LimitClosure, LimitImage, LimitShape, LimitSource, OperationImage, SettleEffect, SettledClaim,
};
use tidegate_core::operation::{Charge, DedupeEntry, OnFailure, OnUnknown};
use tidegate_core::{
    Alternative, Alternatives, EndState, Fault, FaultClass, Hint, PickStrategy, UnknownSubmit,
};

use super::wire::{Input, Problem, Wire};

/// Encodes a record as its fields, in this order.
macro_rules! record {
    ($name:ident { $($field:ident),* }) => {
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($field.put(out);)*
            }

            fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
                Ok(Self { $($field: Wire::get(input)?),* })
            }
        }
    };
}

/// Encodes a choice as its tag and the fields of the chosen variant.
macro_rules! choice {
    ($name:ident { $($tag:literal => $variant:ident $({ $($field:ident),* })? $(( $inner:ident ))?),* $(,)? }) => {
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $inner ))? => {
                        out.push($tag);
                        $($($field.put(out);)*)?
                        $($inner.put(out);)?
                    })*
                }
            }

            fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
                Ok(match u8::get(input)? {
                    $($tag => Self::$variant
                        $({ $($field: Wire::get(input)?),* })?
                        $(({ let $inner = Wire::get(input)?; $inner }))?,)*
                    _ => return Err(Problem::Tag),
                })
            }
        }
    };
}

choice!(Fact {
    1 => Accepted(accepted),
    2 => Claimed { seq, fence, at, until },
    3 => Renewed { seq, fence, until },
    4 => Settled(settled),
    5 => Ended { seq, at, state, hold },
    6 => CancelRequested { seq },
    7 => Repeated { seq, at },
    8 => Paused { group, at, by, reason },
    9 => Resumed { group, at },
    10 => LimitSet { limit, shape, source, at },
    11 => Thawed { limit, at },
    12 => LimitGone { limit, at },
    13 => Sent { seq, fence, at },
    14 => Polled { seq, fence, at, until },
    15 => Reported { seq, fence, at, limit, report },
    16 => Chained { seq, alternatives },
    17 => Picked { seq, alternative, at },
    18 => Woken { seq, at },
    19 => Rechained { seq, alternatives },
    20 => Doubted { seq, fault },
    32 => Counters(counters),
    33 => LimitImage(image),
    34 => GroupImage(image),
    35 => OperationImage(image),
    36 => KeyImage { seq, dedupe },
    37 => AwaitingImage(image),
    38 => ChainImage(image),
    39 => PollImage { fence },
    40 => ClosureImage { limit, closure },
});

record!(AcceptedOperation {
    seq,
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
    acceptance
});
choice!(Acceptance { 0 => New, 1 => Rerun, 2 => RerunFirst });
record!(SettledClaim { seq, fence, at, effect, fault, hints });
choice!(SettleEffect {
    1 => Ended { state, hold },
    2 => Retry { at, reconcile_first },
    3 => Throttled { until, closed },
    4 => Held,
    5 => Returned,
    6 => Awaiting { poll_at, until },
    7 => NextAlternative,
});
choice!(LimitShape {
    1 => Drip { capacity, refill_per_s, margin },
    2 => Window { limit, period },
    3 => Gate,
    4 => Cap { at_once },
    5 => Breaker { ladder },
});
choice!(BreakerReport {
    1 => Accepted,
    2 => Succeeded,
    3 => Failed,
    4 => Throttled { until },
});
record!(Alternatives { list, strategy, on_unknown });
record!(Alternative { name, charges, weight, price });
choice!(PickStrategy { 1 => Chain, 2 => Weighted, 3 => LeastBusy, 4 => Fastest, 5 => Cheapest });
choice!(UnknownSubmit { 1 => Wait { timeout }, 2 => Failover, 3 => Fail });
record!(ChainImage { seq, alternatives, picked, failed });
choice!(LimitSource { 1 => Config, 2 => Operator, 3 => Learned });
choice!(EndState { 1 => Succeeded, 2 => Failed, 3 => Canceled });
choice!(OnUnknown { 1 => Repeat, 2 => Reconcile, 3 => Ask });
choice!(OnFailure { 1 => Skip, 2 => Hold });
choice!(FaultClass {
    1 => Validation,
    2 => Forbidden,
    3 => NotFound,
    4 => RateLimited,
    5 => Transient,
    6 => Conflict,
});

/// Marks an estimated cost: no real cost is this large.
const ESTIMATED: u64 = 1 << 63;

impl Wire for Charge {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { limit, cost, estimated } = self;
        limit.put(out);
        let marked = if *estimated { *cost | ESTIMATED } else { *cost & !ESTIMATED };
        marked.put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let (limit, marked) = (Wire::get(input)?, u64::get(input)?);
        Ok(Self { limit, cost: marked & !ESTIMATED, estimated: marked & ESTIMATED != 0 })
    }
}

impl Wire for CooldownLadder {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|step| step.put(out));
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let mut ladder = Self::default();
        for step in &mut ladder.0 {
            *step = Wire::get(input)?;
        }
        Ok(ladder)
    }
}

record!(DedupeEntry { key, fingerprint, expires });

/// A doubt is part of the message, as in every store.
impl Wire for Fault {
    fn put(&self, out: &mut Vec<u8>) {
        self.class.put(out);
        self.stored_message().into_owned().put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        Ok(Self::from_stored(Wire::get(input)?, Wire::get(input)?))
    }
}

record!(Hint { limit, remaining, capacity, refill_per_s, reset_at, spent });
record!(Counters { next_seq, next_fence, next_turn, clock, ended });
record!(LimitImage {
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
    transit
});
record!(GroupImage { group, turn, not_before, paused, held, running });
record!(LimitClosure { since, at, seq, accepted_at, fault });
record!(AwaitingImage { since, until, poll_at, failed_polls, polling, cancel_sent });
record!(GroupHold { seq, since, unknown, fault });
record!(OperationImage { accepted, attempt, reconcile_first, cancel_requested, fault });
