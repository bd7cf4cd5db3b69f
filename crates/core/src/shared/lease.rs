//! A named lease: taken if free, kept and given back only by its holder, with a fence that grows for ever.

use std::time::Duration;

use crate::time::Time;

/// A lease that somebody holds. The fence is also what proves who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Grows with every holder.
    pub fence: u64,
    /// Runs out then.
    pub until: Time,
}

/// What is stored of a lease, free or not: the last fence outlives its holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The last fence given out.
    pub fence: u64,
    /// When its holder's time runs out; in the past when it is free.
    pub until: Time,
}

/// How a lease stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The last fence given out.
    pub fence: u64,
    /// When its holder's time runs out; `None` when it is free.
    pub held_until: Option<Time>,
}

/// Whether it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// It is the caller's.
    Held(Lease),
    /// Somebody else's until then.
    Busy {
        /// When its holder's time runs out, unless it is renewed.
        until: Time,
    },
}

/// Takes the lease if it is free.
#[must_use]
pub fn acquire(state: LeaseState, now: Time, ttl: Duration) -> (LeaseState, AcquireOutcome) {
    if state.until > now {
        return (state, AcquireOutcome::Busy { until: state.until });
    }
    let next = LeaseState { fence: state.fence + 1, until: now.after(ttl) };
    (next, AcquireOutcome::Held(Lease { fence: next.fence, until: next.until }))
}

/// Keeps it, if `fence` still holds it.
#[must_use]
pub fn renew(state: LeaseState, fence: u64, now: Time, ttl: Duration) -> (LeaseState, Option<Lease>) {
    if state.fence != fence || state.until <= now {
        return (state, None);
    }
    let next = LeaseState { fence, until: now.after(ttl) };
    (next, Some(Lease { fence, until: next.until }))
}

/// Gives it back, if `fence` still holds it.
#[must_use]
pub fn release(state: LeaseState, fence: u64, now: Time) -> (LeaseState, bool) {
    if state.fence != fence || state.until <= now {
        return (state, false);
    }
    (LeaseState { fence, until: now }, true)
}

/// How it stands now; `None` when nobody has ever held it.
#[must_use]
pub fn status(state: LeaseState, now: Time) -> Option<LeaseStatus> {
    let held_until = Some(state.until).filter(|until| *until > now);
    (state.fence > 0).then_some(LeaseStatus { fence: state.fence, held_until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_holder_at_a_time_and_fences_grow(
            steps in proptest::collection::vec((0_u8..3, 0_u64..50, 1_u64..40), 1..60)
        ) {
            let (mut state, mut now) = (LeaseState::default(), Time::from_millis(1_000));
            let mut holder: Option<Lease> = None;
            for (verb, wait, ttl) in steps {
                now = now.after(Duration::from_millis(wait));
                let ttl = Duration::from_millis(ttl);
                let live = holder.filter(|lease| lease.until > now);
                match verb {
                    0 => {
                        let (next, answer) = acquire(state, now, ttl);
                        match answer {
                            AcquireOutcome::Held(lease) => {
                                prop_assert!(live.is_none());
                                prop_assert!(lease.fence > state.fence);
                                holder = Some(lease);
                            }
                            AcquireOutcome::Busy { until } => prop_assert_eq!(live.map(|l| l.until), Some(until)),
                        }
                        state = next;
                    }
                    1 => if let Some(lease) = holder {
                        let (next, answer) = renew(state, lease.fence, now, ttl);
                        prop_assert_eq!(answer.is_some(), live.is_some());
                        holder = answer;
                        state = next;
                    },
                    _ => if let Some(lease) = holder.take() {
                        let (next, done) = release(state, lease.fence, now);
                        prop_assert_eq!(done, live.is_some());
                        state = next;
                    },
                }
            }
        }
    }
}
