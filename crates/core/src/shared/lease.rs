//! A named lease: acquired if free, renewed and released only by its holder, with a fence that only
//! ever grows.

use std::time::Duration;

use crate::time::Time;

/// A held lease. Its fence also proves who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Increases with every holder.
    pub fence: u64,
    /// When the lease expires.
    pub until: Time,
}

/// The stored state of a lease, free or held: the last fence outlives its holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The last fence issued.
    pub fence: u64,
    /// When the holder's lease expires; in the past when the lease is free.
    pub until: Time,
}

/// The status of a lease at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The last fence issued.
    pub fence: u64,
    /// When the holder's lease expires; `None` when the lease is free.
    pub held_until: Option<Time>,
}

/// The outcome of acquiring a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// The caller holds the lease.
    Held(Lease),
    /// Another holder has the lease.
    Busy {
        /// When that holder's lease expires, unless it is renewed.
        until: Time,
    },
}

/// Acquires the lease if it is free.
#[must_use]
pub fn acquire(state: LeaseState, now: Time, ttl: Duration) -> (LeaseState, AcquireOutcome) {
    if state.until > now {
        return (state, AcquireOutcome::Busy { until: state.until });
    }
    let next = LeaseState { fence: state.fence + 1, until: now.after(ttl) };
    (next, AcquireOutcome::Held(Lease { fence: next.fence, until: next.until }))
}

/// Renews the lease, if `fence` still holds it.
#[must_use]
pub fn renew(state: LeaseState, fence: u64, now: Time, ttl: Duration) -> (LeaseState, Option<Lease>) {
    if state.fence != fence || state.until <= now {
        return (state, None);
    }
    let next = LeaseState { fence, until: now.after(ttl) };
    (next, Some(Lease { fence, until: next.until }))
}

/// Releases the lease, if `fence` still holds it.
#[must_use]
pub fn release(state: LeaseState, fence: u64, now: Time) -> (LeaseState, bool) {
    if state.fence != fence || state.until <= now {
        return (state, false);
    }
    (LeaseState { fence, until: now }, true)
}

/// Returns the current status; `None` when the lease was never held.
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
