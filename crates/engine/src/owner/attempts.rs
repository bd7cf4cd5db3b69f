//! Records the attempts whose job ends elsewhere: what the executor has to remember when the job is
//! accepted, and how it ended.

use bytes::Bytes;
use tidegate_core::fact::SettleEffect;
use tidegate_core::model::{ClaimStatus, OverdueClaim};
use tidegate_core::{EndState, Time, Verdict};
use tidegate_store::attempt::{AttemptState, StoredAttempt};

use super::Owner;
use crate::carry::Report;

impl Owner {
    /// Records what a settled claim means for its attempt, if its job was accepted.
    pub(super) fn record_attempt(
        &mut self,
        report: &Report,
        before: ClaimStatus,
        effect: &SettleEffect,
        now: Time,
    ) {
        let is_awaiting = before.awaiting_since.is_some();
        let (state, ended_at) = match effect {
            SettleEffect::Awaiting { .. } if !is_awaiting || report.job.is_some() => {
                (AttemptState::Awaiting, None)
            }
            SettleEffect::Ended { state, .. } if is_awaiting => (end_state(*state), Some(now)),
            SettleEffect::Retry { .. } if is_awaiting && !matches!(report.verdict, Verdict::Unknown(_)) => {
                (AttemptState::Retried, Some(now))
            }
            SettleEffect::Retry { .. } | SettleEffect::Held if is_awaiting => {
                (AttemptState::Unknown, Some(now))
            }
            _ => return,
        };
        let job = report.job.clone().unwrap_or_default();
        self.record(StoredAttempt {
            seq: report.seq,
            fence: report.fence,
            number: before.attempt,
            at: before.awaiting_since.unwrap_or(now),
            ended_at,
            state,
            external_id: job.external_id,
            cost: job.cost,
            memo: job.memo,
        });
    }

    /// Records an attempt whose completion did not come in time.
    pub(super) fn record_overdue(&mut self, overdue: OverdueClaim, now: Time) {
        let OverdueClaim { seq, fence, attempt: number, since: at } = overdue;
        let (ended_at, state) = (Some(now), AttemptState::Unknown);
        let (external_id, cost, memo) = (None, None, Bytes::new());
        self.record(StoredAttempt { seq, fence, number, at, ended_at, state, external_id, cost, memo });
    }

    fn record(&mut self, attempt: StoredAttempt) {
        self.building.bytes += attempt.memo.len();
        self.building.attempts.push(attempt);
    }
}

const fn end_state(state: EndState) -> AttemptState {
    match state {
        EndState::Succeeded => AttemptState::Succeeded,
        EndState::Failed => AttemptState::Failed,
        EndState::Canceled => AttemptState::Canceled,
    }
}
