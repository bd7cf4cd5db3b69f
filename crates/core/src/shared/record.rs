//! An idempotency record: claimed by exactly one caller, renewed while it works, completed or given back, and
//! forgotten when its time is up. `A` is the stored answer, which is never looked into.

use std::time::Duration;

use crate::time::Time;

/// A record that nobody completed is kept this long beyond its time, then clean-up forgets it.
pub const ABANDONED_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// Who holds a claim: drawn at random for each request. A claim repeated after a lost reply is known again by it, and
/// nobody who held the key before, however long ago, passes for the holder of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderToken(pub [u8; 16]);

/// What a caller brings to claim a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordClaim {
    /// Hash of everything that must be the same for it to be the same request.
    pub fingerprint: [u8; 32],
    /// Who claims it.
    pub token: HolderToken,
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
    pub token: HolderToken,
    /// When it was first claimed.
    pub created: Time,
    /// Kept until then, this moment included.
    pub expires: Time,
    /// What becomes of it when the holder's lease runs out.
    pub on_lapse: OnLapse,
    /// Where it stands.
    pub stage: RecordStage<A>,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordStage<A> {
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
pub enum RecordClaimOutcome<A> {
    /// The key is the caller's.
    Granted {
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
pub enum ForgetTarget {
    /// A claim whose work is under way or whose outcome is unknown: the key is free again.
    Claim,
    /// A stored answer: the key is new again.
    Answer,
}

/// What came of forgetting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgetOutcome {
    /// It is gone.
    Gone,
    /// There was nothing under that key.
    Absent,
    /// There was something else: an answer where a claim was meant, or a claim where an answer was.
    Mismatch,
}

impl<A: AsRef<[u8]>> Record<A> {
    /// The record without its answer, of which only the size is told.
    #[must_use]
    pub fn without_answer(&self) -> Record<usize> {
        let stage = match &self.stage {
            RecordStage::Processing { until } => RecordStage::Processing { until: *until },
            RecordStage::Completed(answer) => RecordStage::Completed(answer.as_ref().len()),
        };
        let Self { fingerprint, token, created, expires, on_lapse, .. } = *self;
        Record { fingerprint, token, created, expires, on_lapse, stage }
    }
}

/// Claims a key: new, expired, or left by an owner whose lease ran out. The same claim again is granted again.
#[must_use]
pub fn claim<A: Clone>(
    state: Option<Record<A>>,
    claim: RecordClaim,
    now: Time,
) -> (Option<Record<A>>, RecordClaimOutcome<A>) {
    let Some(record) = state.filter(|record| is_live(record, now)) else {
        return (Some(fresh(claim, now)), RecordClaimOutcome::Granted { taken_over: false });
    };
    if record.fingerprint != claim.fingerprint {
        return (Some(record), RecordClaimOutcome::Conflict);
    }
    match &record.stage {
        RecordStage::Completed(answer) => {
            let answer = answer.clone();
            (Some(record), RecordClaimOutcome::Completed(answer))
        }
        RecordStage::Processing { .. } if record.token == claim.token => {
            (Some(held_by(&record, claim, now)), RecordClaimOutcome::Granted { taken_over: false })
        }
        RecordStage::Processing { until } if *until > now => {
            let until = *until;
            (Some(record), RecordClaimOutcome::Processing { until })
        }
        RecordStage::Processing { .. } => match record.on_lapse {
            OnLapse::Hold => (Some(record), RecordClaimOutcome::Unknown),
            OnLapse::TakeOver => {
                (Some(held_by(&record, claim, now)), RecordClaimOutcome::Granted { taken_over: true })
            }
        },
    }
}

fn fresh<A>(claim: RecordClaim, now: Time) -> Record<A> {
    Record {
        fingerprint: claim.fingerprint,
        token: claim.token,
        created: now,
        expires: now.after(claim.ttl),
        on_lapse: claim.on_lapse,
        stage: RecordStage::Processing { until: now.after(claim.lease) },
    }
}

fn held_by<A>(record: &Record<A>, claim: RecordClaim, now: Time) -> Record<A> {
    let Record { fingerprint, created, expires, .. } = *record;
    let stage = RecordStage::Processing { until: now.after(claim.lease) };
    Record { fingerprint, token: claim.token, created, expires, on_lapse: claim.on_lapse, stage }
}

/// Whether a record still stands: its time is not over, or somebody works on it.
#[must_use]
pub fn is_live<A>(record: &Record<A>, now: Time) -> bool {
    record.expires >= now || matches!(record.stage, RecordStage::Processing { until } if until > now)
}

fn holds<A>(state: Option<&Record<A>>, token: HolderToken) -> bool {
    state.is_some_and(|r| r.token == token && matches!(r.stage, RecordStage::Processing { .. }))
}

/// Stores the answer. A holder whose lease ran out may still complete while nobody took over.
#[must_use]
pub fn complete<A>(state: Option<Record<A>>, token: HolderToken, answer: A) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), token) {
        return (state, false);
    }
    (state.map(|record| Record { stage: RecordStage::Completed(answer), ..record }), true)
}

/// Gives the key back. The record goes.
#[must_use]
pub fn release<A>(state: Option<Record<A>>, token: HolderToken) -> (Option<Record<A>>, bool) {
    if holds(state.as_ref(), token) { (None, true) } else { (state, false) }
}

/// Keeps the key for another `ttl`; none at all lets the lease run out now.
#[must_use]
pub fn renew<A>(
    state: Option<Record<A>>,
    token: HolderToken,
    now: Time,
    ttl: Duration,
) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), token) {
        return (state, false);
    }
    let stage = RecordStage::Processing { until: now.after(ttl) };
    (state.map(|record| Record { stage, ..record }), true)
}

/// Takes away what a person wants gone, whoever holds it. A holder that still works has lost the key.
#[must_use]
pub fn forget<A>(
    state: Option<Record<A>>,
    what: ForgetTarget,
    now: Time,
) -> (Option<Record<A>>, ForgetOutcome) {
    let stage = state.as_ref().filter(|record| is_live(record, now)).map(|record| &record.stage);
    match (what, stage) {
        (_, None) => (state, ForgetOutcome::Absent),
        (ForgetTarget::Claim, Some(RecordStage::Processing { .. }))
        | (ForgetTarget::Answer, Some(RecordStage::Completed(_))) => (None, ForgetOutcome::Gone),
        _ => (state, ForgetOutcome::Mismatch),
    }
}

/// Whether clean-up may remove it: completed and expired. Records in work are not its business; what a dead owner left
/// is forgotten a day after its time.
#[must_use]
pub fn is_sweepable<A>(record: &Record<A>, now: Time) -> bool {
    match record.stage {
        RecordStage::Completed(_) => record.expires < now,
        RecordStage::Processing { until } => until <= now && record.expires.after(ABANDONED_RETENTION) <= now,
    }
}

#[cfg(test)]
mod tests;
