//! Records the attempts whose job ends elsewhere: what the executor has to remember when the job is
//! accepted, and how it ended; and attempts of unknown outcome, which a late report may name.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::bounds::MEMO_LEN_MAX;
use tidegate_core::fact::SettleEffect;
use tidegate_core::model::{ClaimStatus, OverdueClaim, PickTerms};
use tidegate_core::{EndState, OperationId, Time, Verdict};
use tidegate_store::attempt::{AttemptState, StoredAttempt};

use super::Owner;
use crate::carry::Report;

impl Owner {
    /// Records what a settled claim means for its attempt, if its job was accepted, or if it used
    /// an alternative: of those every attempt is kept.
    pub(super) fn record_attempt(
        &mut self,
        report: &Report,
        (before, picked): (ClaimStatus, Option<(&Arc<str>, PickTerms)>),
        effect: &SettleEffect,
        now: Time,
    ) {
        if matches!(report.verdict, Verdict::Unavailable(_)) {
            // Nothing was submitted.
            return;
        }
        let (alternative, terms) = picked.unzip();
        let is_awaiting = before.awaiting_since.is_some();
        let is_kept = is_awaiting || alternative.is_some();
        let (state, ended_at) = match effect {
            SettleEffect::Awaiting { .. } if !is_awaiting || report.job.is_some() => {
                (AttemptState::Awaiting, None)
            }
            SettleEffect::Ended { .. } if alternative.is_some() && is_unknown(&report.verdict) => {
                (AttemptState::Unknown, Some(now))
            }
            SettleEffect::Ended { state, .. } if is_kept => (end_state(*state), Some(now)),
            SettleEffect::Retry { .. } | SettleEffect::NextAlternative if is_kept => {
                let is_unknown = is_unknown(&report.verdict);
                (if is_unknown { AttemptState::Unknown } else { AttemptState::Retried }, Some(now))
            }
            SettleEffect::Throttled { .. } if alternative.is_some() && !is_awaiting => {
                (AttemptState::Retried, Some(now))
            }
            // Whoever has its token may still report how it ended.
            SettleEffect::Held => (AttemptState::Unknown, Some(now)),
            _ => return,
        };
        let mut job = report.job.clone().unwrap_or_default();
        if !is_awaiting && matches!(effect, SettleEffect::Held) && report.body.len() <= MEMO_LEN_MAX {
            // What the upstream answered, for the person who has to find out what happened.
            job.memo = report.body.clone();
        }
        if !is_awaiting && report.job.as_ref().is_none_or(|job| job.memo.is_empty()) {
            job.memo = alternative.map_or(job.memo, name_of);
        }
        self.record(StoredAttempt {
            seq: report.seq,
            fence: before.fence,
            number: before.attempt,
            at: submitted_at(terms, before.awaiting_since.unwrap_or(now)),
            ended_at,
            state,
            external_id: job.external_id,
            // The end of a job keeps the cost that was recorded; an earlier row is replaced.
            cost: job.cost.or_else(|| terms.filter(|_| !is_awaiting || ended_at.is_none())?.price),
            memo: job.memo,
        });
    }

    /// Records an attempt whose completion did not come in time.
    pub(super) fn record_overdue(&mut self, overdue: &OverdueClaim, now: Time) {
        let OverdueClaim { seq, fence, attempt: number, since, terms, .. } = *overdue;
        let at = submitted_at(terms, since);
        let (ended_at, state) = (Some(now), AttemptState::Unknown);
        let (external_id, cost, memo) = (None, None, Bytes::new());
        self.record(StoredAttempt { seq, fence, number, at, ended_at, state, external_id, cost, memo });
    }

    /// Records an attempt whose worker is gone: it is awaited, or its outcome stays unknown.
    pub(super) fn record_lost(&mut self, lost: &OverdueClaim, now: Time) {
        let OverdueClaim { seq, fence, attempt: number, ref alternative, terms, .. } = *lost;
        // Of a worker's claim nothing says that a job was accepted.
        let at = submitted_at(terms, now);
        let is_awaited = self.model.claim_status(seq, fence).is_some();
        let state = if is_awaited { AttemptState::Awaiting } else { AttemptState::Unknown };
        let (ended_at, memo) = ((!is_awaited).then_some(now), alternative.as_ref().map(name_of));
        let (external_id, cost, memo) = (None, terms.and_then(|terms| terms.price), memo.unwrap_or_default());
        self.record(StoredAttempt { seq, fence, number, at, ended_at, state, external_id, cost, memo });
    }

    /// The attempt through an alternative that an operation is at, as its claim has it.
    pub(crate) fn claimed_attempt(&self, id: OperationId) -> Option<StoredAttempt> {
        let seq = id.seq();
        let fence = self.model.current_fence(seq)?;
        let status = self.model.claim_status(seq, fence)?;
        let PickTerms { at, price } = self.model.pick_terms(seq)?;
        let memo = self.model.picked_alternative(seq).map(name_of)?;
        let (ended_at, state, external_id, number) = (None, AttemptState::Awaiting, None, status.attempt);
        let attempt =
            StoredAttempt { seq, fence, number, at, ended_at, state, external_id, cost: price, memo };
        (self.id_of(seq, status.accepted_at) == id).then_some(attempt)
    }

    /// Records how an attempt of unknown outcome ended after all.
    pub(crate) fn record_late(&mut self, attempt: StoredAttempt, ended: Option<EndState>, now: Time) {
        let state = ended.map_or(AttemptState::Retried, end_state);
        self.record(StoredAttempt { state, ended_at: Some(now), ..attempt });
    }

    fn record(&mut self, attempt: StoredAttempt) {
        self.building.bytes += attempt.memo.len();
        self.building.attempts.push(attempt);
    }
}

/// When an attempt counts from: where an alternative was picked for it, from then.
fn submitted_at(terms: Option<PickTerms>, otherwise: Time) -> Time {
    terms.map_or(otherwise, |terms| terms.at)
}

/// What is kept of an attempt of which its executor left no memo.
fn name_of(alternative: &Arc<str>) -> Bytes {
    Bytes::copy_from_slice(alternative.as_bytes())
}

const fn is_unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(_) | Verdict::Lost(_) | Verdict::PollFailed { .. })
}

const fn end_state(state: EndState) -> AttemptState {
    match state {
        EndState::Succeeded => AttemptState::Succeeded,
        EndState::Failed => AttemptState::Failed,
        EndState::Canceled => AttemptState::Canceled,
    }
}
