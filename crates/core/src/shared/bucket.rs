//! Stand-alone token buckets: reserved from several at once, all or nothing, and settled later. The
//! arithmetic is that of the drip.

use std::time::Duration;

use crate::bucket::drip::Drip;
use crate::time::Time;

/// A request for tokens from one bucket. The request carries the bucket's figures, and the bucket
/// adopts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The bucket's name.
    pub name: String,
    /// The tokens requested, in micro-tokens.
    pub cost: u64,
    /// The bucket's capacity, in micro-tokens.
    pub capacity: u64,
    /// The refill rate, in micro-tokens per second.
    pub refill_per_s: u64,
}

/// The fill level of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Micro-tokens remaining.
    pub tokens: u64,
    /// The fraction of a micro-token left over from the last refill.
    pub carry: u64,
    /// The time at which this level was computed.
    pub at: Time,
    /// The capacity, in micro-tokens.
    pub capacity: u64,
    /// The refill rate, in micro-tokens per second.
    pub refill_per_s: u64,
}

impl Level {
    /// The settlement that lowers the level to what the API behind the bucket reported. `None`
    /// where the level is not higher: a report never raises it, because calls in flight have not
    /// reached the API yet.
    #[must_use]
    pub const fn lowering_to(&self, reported: u64) -> Option<Settlement> {
        match self.tokens.checked_sub(reported) {
            None | Some(0) => None,
            Some(excess) => Some(Settlement { reserved: 0, actual: excess }),
        }
    }
}

/// The outcome of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// All tokens were taken.
    Granted {
        /// Micro-tokens remaining in each bucket, in the order requested.
        remaining: Vec<u64>,
    },
    /// Nothing was taken.
    Wait {
        /// How long until all of them can be granted if no one else takes any: the longest wait
        /// among the buckets.
        delay: Duration,
        /// Micro-tokens remaining in each bucket, in the order requested.
        remaining: Vec<u64>,
    },
    /// The request can never be granted: it exceeds a bucket's capacity.
    Never {
        /// The index of that bucket, in the order requested.
        which: usize,
    },
}

/// A correction of a reservation by its actual cost, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The amount reserved.
    pub reserved: u64,
    /// The actual cost.
    pub actual: u64,
}

/// Takes tokens from every bucket, or from none. `states` are in the order of `wanted`; a name must
/// not occur twice.
#[must_use]
pub fn reserve(
    states: &[Option<Level>],
    wanted: &[ReservationRequest],
    now: Time,
) -> (Vec<Level>, ReserveOutcome) {
    let mut levels: Vec<Level> =
        states.iter().zip(wanted).map(|(state, want)| level(current(*state, want, now))).collect();
    let left = |levels: &[Level]| levels.iter().map(|level| level.tokens).collect();
    let answer = if let Some(which) = wanted.iter().position(|want| want.cost > want.capacity) {
        ReserveOutcome::Never { which }
    } else {
        let delay = levels.iter().zip(wanted).map(|(level, want)| drip(*level).wait(want.cost, now)).max();
        match delay {
            Some(delay) if !delay.is_zero() => ReserveOutcome::Wait { delay, remaining: left(&levels) },
            _ => {
                for (level, want) in levels.iter_mut().zip(wanted) {
                    level.tokens = level.tokens.saturating_sub(want.cost);
                }
                ReserveOutcome::Granted { remaining: left(&levels) }
            }
        }
    };
    (levels, answer)
}

/// Puts back unused tokens, or takes the excess, never going below zero.
#[must_use]
pub fn settle(state: Level, settlement: Settlement, now: Time) -> Level {
    let mut drip = drip(state);
    if settlement.actual <= settlement.reserved {
        drip.give_back(settlement.reserved - settlement.actual, now);
    } else {
        drip.take_beyond(settlement.actual - settlement.reserved, now);
    }
    level(drip)
}

/// The level refilled up to `now`.
#[must_use]
pub fn observe(state: Level, now: Time) -> Level {
    level(drip(state).refreshed(now))
}

fn current(state: Option<Level>, want: &ReservationRequest, now: Time) -> Drip {
    state.map_or_else(
        || Drip::full(want.capacity, want.refill_per_s, 0, now),
        |state| drip(state).reshaped(want.capacity, want.refill_per_s, 0, now),
    )
}

fn drip(state: Level) -> Drip {
    Drip {
        capacity: state.capacity,
        refill_per_s: state.refill_per_s,
        margin: 0,
        level: state.tokens,
        at: state.at,
        carry: state.carry,
    }
}

fn level(drip: Drip) -> Level {
    Level {
        tokens: drip.level,
        carry: drip.carry,
        at: drip.at,
        capacity: drip.capacity,
        refill_per_s: drip.refill_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::MICRO;
    use proptest::prelude::*;

    fn want(name: &str, cost: u64, capacity: u64, rate: u64) -> ReservationRequest {
        ReservationRequest {
            name: name.into(),
            cost: cost * MICRO,
            capacity: capacity * MICRO,
            refill_per_s: rate * MICRO,
        }
    }

    /// LIM-7: a refusal takes from neither bucket, and its delay is the longest of them.
    /// LIM-9: more than a bucket can hold is refused, not waited for.
    #[test]
    fn lim_7_all_or_nothing_with_the_longest_delay() {
        let now = Time::from_millis(5_000);
        let both = [want("a", 1, 5, 1), want("b", 4, 5, 2)];
        let (states, first) = reserve(&[None, None], &both, now);
        assert_eq!(first, ReserveOutcome::Granted { remaining: vec![4 * MICRO, MICRO] });
        let states: Vec<_> = states.into_iter().map(Some).collect();
        let (_, second) = reserve(&states, &both, now);
        let delay = Duration::from_millis(1_500);
        assert_eq!(second, ReserveOutcome::Wait { delay, remaining: vec![4 * MICRO, MICRO] });
        let (_, third) = reserve(&states, &[want("a", 1, 5, 1), want("b", 6, 5, 2)], now);
        assert_eq!(third, ReserveOutcome::Never { which: 1 });
    }

    /// LIM-23: a reported level counts where it is lower, and never raises the bucket's own.
    #[test]
    fn lim_23_a_report_lowers_the_level_and_never_raises_it() {
        let now = Time::from_millis(5_000);
        let (levels, _) = reserve(&[None], &[want("x", 4, 10, 1)], now);
        assert_eq!((levels[0].lowering_to(6 * MICRO), levels[0].lowering_to(9 * MICRO)), (None, None));
        let lower = levels[0].lowering_to(2 * MICRO).unwrap();
        assert_eq!(settle(levels[0], lower, now).tokens, 2 * MICRO);
    }

    proptest! {
        /// LIM-6: what was granted never exceeds capacity plus refill, whatever the moments and
        /// costs.
        #[test]
        fn lim_6_granted_within_capacity_plus_refill(
            steps in proptest::collection::vec((0_u64..700_000, 1_u64..5), 1..200),
            capacity in 5_u64..20, rate in 1_u64..30,
        ) {
            let start = Time::from_millis(1_000);
            let (mut now, mut state, mut granted) = (start, None, 0_u64);
            for (wait, cost) in steps {
                now = now.after(Duration::from_micros(wait));
                let (next, answer) = reserve(&[state], &[want("x", cost, capacity, rate)], now);
                if matches!(answer, ReserveOutcome::Granted { .. }) {
                    granted += cost * MICRO;
                }
                state = next.first().copied();
                let most = u128::from(capacity * MICRO)
                    + u128::from(now.since(start).as_micros() as u64) * u128::from(rate);
                prop_assert!(u128::from(granted) <= most);
            }
        }

        /// LIM-5: the reported delay is exact: a microsecond earlier the request is refused, then
        /// granted.
        #[test]
        fn lim_5_the_delay_is_exact(capacity in 1_u64..50, rate in 1_u64..1_000, cost in 1_u64..50) {
            prop_assume!(cost <= capacity);
            let now = Time::from_millis(9);
            let all = want("x", capacity, capacity, rate);
            let (states, _) = reserve(&[None], &[all], now);
            let wanted = [want("x", cost, capacity, rate)];
            let (_, answer) = reserve(&[Some(states[0])], &wanted, now);
            let ReserveOutcome::Wait { delay, .. } = answer else { panic!("granted twice") };
            let early = now.after(delay).before(Duration::from_micros(1));
            let refused = matches!(reserve(&[Some(states[0])], &wanted, early).1, ReserveOutcome::Wait { .. });
            let granted = matches!(reserve(&[Some(states[0])], &wanted, now.after(delay)).1, ReserveOutcome::Granted { .. });
            prop_assert!(refused && granted);
        }
    }
}
