//! An idempotency record: claimed by exactly one caller, renewed while it works, completed or given back, and
//! forgotten when its time is up. `A` is the stored answer, which is never looked into.

use std::time::Duration;

use crate::time::Time;

/// What a caller brings to claim a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Hash of everything that must be the same for it to be the same request.
    pub fingerprint: [u8; 32],
    /// How long the claim holds without renewal.
    pub lease: Duration,
    /// How long the record is kept, from its creation on.
    pub ttl: Duration,
}

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<A> {
    /// The request it belongs to.
    pub fingerprint: [u8; 32],
    /// Grows with every claim of this key while the record lives.
    pub fence: u64,
    /// When it was first claimed.
    pub created: Time,
    /// Forgotten then.
    pub expires: Time,
    /// Where it stands.
    pub stage: Stage<A>,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<A> {
    /// Somebody works on it, until their lease runs out.
    Processing {
        /// When the lease runs out.
        until: Time,
    },
    /// The answer is there.
    Completed(A),
}

/// The proof of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The claim's fence.
    pub fence: u64,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed<A> {
    /// The key is the caller's.
    Yours {
        /// The proof.
        holder: Held,
        /// Whether a dead owner's claim was taken over.
        taken_over: bool,
    },
    /// The answer is there.
    Completed(A),
    /// Somebody works on it.
    Processing {
        /// When their lease runs out.
        until: Time,
    },
    /// The key belongs to another request.
    Conflict,
}

/// Claims a key: new, expired, or left by an owner whose lease ran out.
#[must_use]
pub fn claim<A: Clone>(state: Option<Record<A>>, claim: Claim, now: Time) -> (Option<Record<A>>, Claimed<A>) {
    let live = state.as_ref().filter(|record| record.expires > now || is_processing(record, now));
    let Some(record) = live else {
        let fence = state.map_or(1, |old| old.fence + 1);
        return fresh(fence, claim, now);
    };
    if record.fingerprint != claim.fingerprint {
        return (state, Claimed::Conflict);
    }
    match &record.stage {
        Stage::Completed(answer) => {
            let answer = answer.clone();
            (state, Claimed::Completed(answer))
        }
        Stage::Processing { until } if *until > now => {
            let until = *until;
            (state, Claimed::Processing { until })
        }
        Stage::Processing { .. } => {
            let fence = record.fence + 1;
            let next = Record {
                fence,
                stage: Stage::Processing { until: now.after(claim.lease) },
                ..record.clone()
            };
            (Some(next), Claimed::Yours { holder: Held { fence }, taken_over: true })
        }
    }
}

fn fresh<A>(fence: u64, claim: Claim, now: Time) -> (Option<Record<A>>, Claimed<A>) {
    let record = Record {
        fingerprint: claim.fingerprint,
        fence,
        created: now,
        expires: now.after(claim.ttl),
        stage: Stage::Processing { until: now.after(claim.lease) },
    };
    (Some(record), Claimed::Yours { holder: Held { fence }, taken_over: false })
}

fn is_processing<A>(record: &Record<A>, now: Time) -> bool {
    matches!(record.stage, Stage::Processing { until } if until > now)
}

fn holds<A>(state: Option<&Record<A>>, holder: Held) -> bool {
    state.is_some_and(|r| r.fence == holder.fence && matches!(r.stage, Stage::Processing { .. }))
}

/// Stores the answer. A holder whose lease ran out may still complete while nobody took over.
#[must_use]
pub fn complete<A>(state: Option<Record<A>>, holder: Held, answer: A) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), holder) {
        return (state, false);
    }
    (state.map(|record| Record { stage: Stage::Completed(answer), ..record }), true)
}

/// Gives the key back. The record goes.
#[must_use]
pub fn release<A>(state: Option<Record<A>>, holder: Held) -> (Option<Record<A>>, bool) {
    if holds(state.as_ref(), holder) { (None, true) } else { (state, false) }
}

/// Keeps the key for another `ttl`.
#[must_use]
pub fn renew<A>(
    state: Option<Record<A>>,
    holder: Held,
    now: Time,
    ttl: Duration,
) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), holder) {
        return (state, false);
    }
    let stage = Stage::Processing { until: now.after(ttl) };
    (state.map(|record| Record { stage, ..record }), true)
}

/// Whether clean-up may remove it: completed and expired. Records in work are not its business.
#[must_use]
pub fn is_swept<A>(record: &Record<A>, now: Time) -> bool {
    record.expires <= now && matches!(record.stage, Stage::Completed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Claim =
        Claim { fingerprint: [7; 32], lease: Duration::from_secs(30), ttl: Duration::from_secs(3_600) };

    fn at(s: u64) -> Time {
        Time::from_millis(s * 1_000)
    }

    fn yours<A: Clone + std::fmt::Debug>(answer: &Claimed<A>) -> Held {
        match answer {
            Claimed::Yours { holder, .. } => *holder,
            other => panic!("not claimed: {other:?}"),
        }
    }

    #[test]
    fn a_dead_owner_is_taken_over_and_its_late_answer_changes_nothing() {
        let (state, first) = claim::<&str>(None, CLAIM, at(0));
        let (state, busy) = claim(state, CLAIM, at(29));
        assert_eq!(busy, Claimed::Processing { until: at(30) });
        let (state, second) = claim(state, CLAIM, at(31));
        assert!(matches!(second, Claimed::Yours { taken_over: true, .. }));
        let (state, done) = complete(state, yours(&first), "late");
        assert!(!done);
        let (state, done) = complete(state, yours(&second), "right");
        assert!(done);
        assert_eq!(claim(state, CLAIM, at(40)).1, Claimed::Completed("right"));
    }

    /// The answer is kept for an hour from the claim on, not prolonged by repeats; another body is a conflict.
    #[test]
    fn at_the_end_of_its_time_the_key_is_new() {
        let (state, first) = claim::<u8>(None, CLAIM, at(0));
        let (state, _) = complete(state, yours(&first), 1);
        let other = Claim { fingerprint: [8; 32], ..CLAIM };
        assert_eq!(claim(state.clone(), other, at(10)).1, Claimed::Conflict);
        assert_eq!(claim(state.clone(), CLAIM, at(3_599)).1, Claimed::Completed(1));
        assert!(!is_swept(state.as_ref().unwrap(), at(3_599)));
        assert!(is_swept(state.as_ref().unwrap(), at(3_600)));
        assert!(matches!(claim(state, other, at(3_600)).1, Claimed::Yours { taken_over: false, .. }));
    }
}
