//! An idempotency record: claimed by exactly one caller, renewed while it works, completed or given back, and
//! forgotten when its time is up. `A` is the stored answer, which is never looked into.

use std::time::Duration;

use crate::time::Time;

/// A record that nobody completed is kept this long beyond its time, then clean-up forgets it.
pub const LEFT_BEHIND_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Who holds a claim: drawn at random for each request. A claim repeated after a lost reply is known again by it, and
/// nobody who held the key before, however long ago, passes for the holder of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; 16]);

/// What a caller brings to claim a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Hash of everything that must be the same for it to be the same request.
    pub fingerprint: [u8; 32],
    /// Who claims it.
    pub token: Token,
    /// How long the claim holds without renewal.
    pub lease: Duration,
    /// How long the record is kept, from its creation on.
    pub ttl: Duration,
    /// What becomes of the key when this holder's lease runs out.
    pub on_lapse: OnLapse,
}

/// What becomes of a key whose holder let its lease run out: it died, or it does not know what came of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLapse {
    /// The next claim takes it over.
    TakeOver,
    /// It is held until it expires: what was done must not be done again on a guess.
    Hold,
}

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<A> {
    /// The request it belongs to.
    pub fingerprint: [u8; 32],
    /// Who holds it, or held it last.
    pub token: Token,
    /// When it was first claimed.
    pub created: Time,
    /// Kept until then, this moment included.
    pub expires: Time,
    /// What becomes of it when the holder's lease runs out.
    pub on_lapse: OnLapse,
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

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed<A> {
    /// The key is the caller's.
    Yours {
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
    /// Somebody worked on it, and nobody knows what came of it.
    Unknown,
    /// The key belongs to another request.
    Conflict,
}

/// What a person wants gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// A claim whose work is under way or whose outcome is unknown: the key is free again.
    Claim,
    /// A stored answer: the key is new again.
    Answer,
}

/// What came of forgetting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgot {
    /// It is gone.
    Gone,
    /// There was nothing under that key.
    Absent,
    /// There was something else: an answer where a claim was meant, or a claim where an answer was.
    Otherwise,
}

impl<A: AsRef<[u8]>> Record<A> {
    /// The record without its answer, of which only the size is told.
    #[must_use]
    pub fn outline(&self) -> Record<usize> {
        let stage = match &self.stage {
            Stage::Processing { until } => Stage::Processing { until: *until },
            Stage::Completed(answer) => Stage::Completed(answer.as_ref().len()),
        };
        let Self { fingerprint, token, created, expires, on_lapse, .. } = *self;
        Record { fingerprint, token, created, expires, on_lapse, stage }
    }
}

/// Claims a key: new, expired, or left by an owner whose lease ran out. The same claim again is granted again.
#[must_use]
pub fn claim<A: Clone>(state: Option<Record<A>>, claim: Claim, now: Time) -> (Option<Record<A>>, Claimed<A>) {
    let Some(record) = state.filter(|record| is_live(record, now)) else {
        return (Some(fresh(claim, now)), Claimed::Yours { taken_over: false });
    };
    if record.fingerprint != claim.fingerprint {
        return (Some(record), Claimed::Conflict);
    }
    match &record.stage {
        Stage::Completed(answer) => {
            let answer = answer.clone();
            (Some(record), Claimed::Completed(answer))
        }
        Stage::Processing { .. } if record.token == claim.token => {
            (Some(held_by(&record, claim, now)), Claimed::Yours { taken_over: false })
        }
        Stage::Processing { until } if *until > now => {
            let until = *until;
            (Some(record), Claimed::Processing { until })
        }
        Stage::Processing { .. } => match record.on_lapse {
            OnLapse::Hold => (Some(record), Claimed::Unknown),
            OnLapse::TakeOver => (Some(held_by(&record, claim, now)), Claimed::Yours { taken_over: true }),
        },
    }
}

fn fresh<A>(claim: Claim, now: Time) -> Record<A> {
    Record {
        fingerprint: claim.fingerprint,
        token: claim.token,
        created: now,
        expires: now.after(claim.ttl),
        on_lapse: claim.on_lapse,
        stage: Stage::Processing { until: now.after(claim.lease) },
    }
}

fn held_by<A>(record: &Record<A>, claim: Claim, now: Time) -> Record<A> {
    let Record { fingerprint, created, expires, .. } = *record;
    let stage = Stage::Processing { until: now.after(claim.lease) };
    Record { fingerprint, token: claim.token, created, expires, on_lapse: claim.on_lapse, stage }
}

/// Whether a record still stands: its time is not over, or somebody works on it.
#[must_use]
pub fn is_live<A>(record: &Record<A>, now: Time) -> bool {
    record.expires >= now || matches!(record.stage, Stage::Processing { until } if until > now)
}

fn holds<A>(state: Option<&Record<A>>, token: Token) -> bool {
    state.is_some_and(|r| r.token == token && matches!(r.stage, Stage::Processing { .. }))
}

/// Stores the answer. A holder whose lease ran out may still complete while nobody took over.
#[must_use]
pub fn complete<A>(state: Option<Record<A>>, token: Token, answer: A) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), token) {
        return (state, false);
    }
    (state.map(|record| Record { stage: Stage::Completed(answer), ..record }), true)
}

/// Gives the key back. The record goes.
#[must_use]
pub fn release<A>(state: Option<Record<A>>, token: Token) -> (Option<Record<A>>, bool) {
    if holds(state.as_ref(), token) { (None, true) } else { (state, false) }
}

/// Keeps the key for another `ttl`; none at all lets the lease run out now.
#[must_use]
pub fn renew<A>(
    state: Option<Record<A>>,
    token: Token,
    now: Time,
    ttl: Duration,
) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), token) {
        return (state, false);
    }
    let stage = Stage::Processing { until: now.after(ttl) };
    (state.map(|record| Record { stage, ..record }), true)
}

/// Takes away what a person wants gone, whoever holds it. A holder that still works has lost the key.
#[must_use]
pub fn forget<A>(state: Option<Record<A>>, what: Forget, now: Time) -> (Option<Record<A>>, Forgot) {
    let stage = state.as_ref().filter(|record| is_live(record, now)).map(|record| &record.stage);
    match (what, stage) {
        (_, None) => (state, Forgot::Absent),
        (Forget::Claim, Some(Stage::Processing { .. })) | (Forget::Answer, Some(Stage::Completed(_))) => {
            (None, Forgot::Gone)
        }
        _ => (state, Forgot::Otherwise),
    }
}

/// Whether clean-up may remove it: completed and expired. Records in work are not its business; what a dead owner left
/// is forgotten a day after its time.
#[must_use]
pub fn is_swept<A>(record: &Record<A>, now: Time) -> bool {
    match record.stage {
        Stage::Completed(_) => record.expires < now,
        Stage::Processing { until } => until <= now && record.expires.after(LEFT_BEHIND_FOR) <= now,
    }
}

#[cfg(test)]
mod tests;
