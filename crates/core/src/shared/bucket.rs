//! A stand-alone token bucket: several taken all or nothing, settled later. The arithmetic is the drip's.

use std::time::Duration;

use crate::bucket::drip::Drip;
use crate::time::Time;

/// What is wanted of one bucket. The figures travel with the request; the bucket follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The bucket's name.
    pub name: String,
    /// What is wanted, in micro-tokens.
    pub cost: u64,
    /// The most it holds, in micro-tokens.
    pub capacity: u64,
    /// What comes back each second, in micro-tokens.
    pub refill_per_s: u64,
}

/// What is in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Micro-tokens left.
    pub tokens: u64,
    /// The part of a micro-token that the last refill left over.
    pub carry: u64,
    /// When that was true.
    pub at: Time,
    /// The most it holds.
    pub capacity: u64,
    /// What comes back each second.
    pub refill_per_s: u64,
}

/// Whether it was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// All of it was taken; what is left in each.
    Granted {
        /// Micro-tokens left, in the order asked.
        remaining: Vec<u64>,
    },
    /// Nothing was taken.
    Wait {
        /// When all of it could be had, if nobody else takes any: the longest of them.
        delay: Duration,
        /// Micro-tokens left, in the order asked.
        remaining: Vec<u64>,
    },
    /// It can never be granted: this bucket cannot hold that much.
    Never {
        /// Which one, in the order asked.
        which: usize,
    },
}

/// A correction: what was taken, and what it really cost. Micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What was taken.
    pub reserved: u64,
    /// What it cost.
    pub actual: u64,
}

/// Takes from every bucket, or from none. `states` are in the order of `wanted`; a name must not come twice.
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

/// Gives back what was not used, or takes what was used beyond, never below nothing.
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

/// What is in it now.
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

    proptest! {
        /// LIM-6: what was granted never exceeds capacity plus refill, whatever the moments and costs.
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

        /// LIM-5: the delay that is told is exact: a microsecond earlier it is refused, then it is granted.
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
