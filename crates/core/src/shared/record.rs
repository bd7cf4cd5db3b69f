//! An idempotency record: claimed by exactly one caller, renewed while the caller works, completed
//! or released, and removed when it expires. `A` is the stored answer; this module never inspects
//! it.

use std::time::Duration;

use crate::time::Time;

/// How long a record that was never completed is kept after its expiry, before clean-up removes it.
pub const ABANDONED_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// Identifies the holder of a claim; drawn at random for each request. It lets a claim that is
/// repeated after a lost reply be recognized, and no earlier holder of the key, however long ago,
/// can pass for the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderToken(pub [u8; 16]);

/// The parameters of a claim on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordClaim {
    /// Hash of everything that must match for two requests to be the same.
    pub fingerprint: [u8; 32],
    /// The claimant.
    pub token: HolderToken,
    /// How long the claim holds without renewal.
    pub lease: Duration,
    /// How long the record is kept after its creation.
    pub ttl: Duration,
    /// What happens to the key when this holder's lease expires.
    pub on_lapse: OnLapse,
}

/// What happens to a key whose holder let its lease expire, because it died or does not know the
/// outcome of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLapse {
    /// The next claim takes it over.
    TakeOver,
    /// The key stays held until the record expires: the work must not be repeated on a guess.
    Hold,
}

/// A record stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<A> {
    /// Fingerprint of the request it belongs to.
    pub fingerprint: [u8; 32],
    /// The current or last holder.
    pub token: HolderToken,
    /// When it was first claimed.
    pub created: Time,
    /// The record is kept until this moment, inclusive.
    pub expires: Time,
    /// What happens to the key when the holder's lease expires.
    pub on_lapse: OnLapse,
    /// The current stage.
    pub stage: RecordStage<A>,
}

/// The stage of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordStage<A> {
    /// A holder is working on it until its lease expires.
    Processing {
        /// When the lease expires.
        until: Time,
    },
    /// The answer is stored.
    Completed(A),
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordClaimOutcome<A> {
    /// The caller now holds the key.
    Granted {
        /// Whether the claim of a dead holder was taken over.
        taken_over: bool,
    },
    /// The answer is already stored.
    Completed(A),
    /// Another holder is working on it.
    Processing {
        /// When its lease expires.
        until: Time,
    },
    /// A holder worked on it, and the outcome is unknown.
    Unknown,
    /// The key belongs to a different request.
    Conflict,
}

/// What an operator wants removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgetTarget {
    /// A claim in progress or of unknown outcome; removing it frees the key.
    Claim,
    /// A stored answer; removing it makes the key new again.
    Answer,
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgetOutcome {
    /// The record was removed.
    Gone,
    /// There was no record under that key.
    Absent,
    /// The record was of the other kind: an answer where a claim was meant, or the reverse.
    Mismatch,
}

impl<A: AsRef<[u8]>> Record<A> {
    /// Copies the record with its answer replaced by the answer's size.
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

/// Claims a key that is new, expired, or left by a holder whose lease expired. Repeating the same
/// claim grants it again.
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

/// Whether a record is still in force: it has not expired, or a holder is working on it.
#[must_use]
pub fn is_live<A>(record: &Record<A>, now: Time) -> bool {
    record.expires >= now || matches!(record.stage, RecordStage::Processing { until } if until > now)
}

fn holds<A>(state: Option<&Record<A>>, token: HolderToken) -> bool {
    state.is_some_and(|r| r.token == token && matches!(r.stage, RecordStage::Processing { .. }))
}

/// Stores the answer. A holder whose lease expired may still complete the record while no one has
/// taken it over.
#[must_use]
pub fn complete<A>(state: Option<Record<A>>, token: HolderToken, answer: A) -> (Option<Record<A>>, bool) {
    if !holds(state.as_ref(), token) {
        return (state, false);
    }
    (state.map(|record| Record { stage: RecordStage::Completed(answer), ..record }), true)
}

/// Releases the key and removes the record.
#[must_use]
pub fn release<A>(state: Option<Record<A>>, token: HolderToken) -> (Option<Record<A>>, bool) {
    if holds(state.as_ref(), token) { (None, true) } else { (state, false) }
}

/// Extends the holder's lease by `ttl`; a zero `ttl` expires it now.
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

/// Removes the claim or answer that an operator names, whoever holds it. A holder still at work
/// loses the key.
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

/// Whether clean-up may remove the record: completed and expired. Clean-up leaves records in
/// progress alone; what a dead holder left is removed a day after it expires.
#[must_use]
pub fn is_sweepable<A>(record: &Record<A>, now: Time) -> bool {
    match record.stage {
        RecordStage::Completed(_) => record.expires < now,
        RecordStage::Processing { until } => until <= now && record.expires.after(ABANDONED_RETENTION) <= now,
    }
}

#[cfg(test)]
mod tests;
