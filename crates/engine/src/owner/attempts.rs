//! Records the attempts whose job ends elsewhere: what the executor has to remember when the job is
//! accepted, and how it ended; and attempts of unknown outcome, which a late report may name.

use bytes::Bytes;
use tidegate_core::bounds::MEMO_LEN_MAX;
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
            SettleEffect::Retry { .. } | SettleEffect::NextAlternative
                if is_awaiting && is_retry(&report.verdict) =>
            {
                (AttemptState::Retried, Some(now))
            }
            SettleEffect::Retry { .. } | SettleEffect::NextAlternative if is_awaiting => {
                (AttemptState::Unknown, Some(now))
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
        self.record(StoredAttempt {
            seq: report.seq,
            fence: before.fence,
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

const fn is_retry(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Unknown(_) | Verdict::Lost(_) | Verdict::PollFailed { .. })
}

const fn end_state(state: EndState) -> AttemptState {
    match state {
        EndState::Succeeded => AttemptState::Succeeded,
        EndState::Failed => AttemptState::Failed,
        EndState::Canceled => AttemptState::Canceled,
    }
}
