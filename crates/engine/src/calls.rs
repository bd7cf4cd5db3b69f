//! The calls of a partition that this process is responsible for: claimed and about to leave, in
//! flight, or answered and not settled yet. They outlive the model, which is read again after an
//! outage, and the engine, which another one of the same process may follow. So a living process
//! never sends again what it still waits for, and does not forget an answer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tidegate_core::model::Claim;
use tidegate_core::{Fence, Seq, Time, Verdict};
use tidegate_store::log::{Epoch, StoredOperation};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::carry::Report;
use crate::owner::ReadAheadOutcome;

/// Something happened to a call.
pub(crate) enum CallEvent {
    /// An attempt has ended.
    Reported(Report),
    /// The payloads of claims were read.
    Fetched(Vec<(Claim, Result<StoredOperation, Verdict>)>),
    /// Payloads were read ahead of need.
    ReadAhead(ReadAheadOutcome),
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    /// The fence that it left with, which its report carries.
    pub sent_with: Fence,
    /// The claim that its report settles: a later one when its operation was claimed again since.
    pub fence: Fence,
    /// With the seq, what tells its operation from every other.
    pub accepted_at: Time,
    pub sent_at: Time,
    /// Tells it to stop.
    pub stop: CancellationToken,
}

/// What this process knows of a claim.
pub(crate) enum CallStatus {
    /// Its call is in flight here.
    Sent { sent_at: Time },
    /// Its call is about to leave here.
    Unsent,
    /// Its call never left.
    NeverSent,
    /// Nothing.
    Untracked,
}

pub(crate) struct Calls {
    sent: FxHashMap<Seq, InFlightCall>,
    /// Claims whose calls have not left yet.
    unsent: FxHashMap<Fence, Seq>,
    /// Claims of appends that may or may not stand, whose calls have not left.
    never_sent: FxHashSet<(Seq, Fence)>,
    /// The last epoch in which this process owned the partition.
    epoch: Option<Epoch>,
    /// Reports whose settlement is not durable.
    pub(crate) unsettled: Vec<Report>,
    pub(crate) events: mpsc::UnboundedReceiver<CallEvent>,
    pub(crate) event: mpsc::UnboundedSender<CallEvent>,
    /// The end of a drain: what is in flight is given up.
    pub(crate) give_up: CancellationToken,
}

impl Calls {
    fn new() -> Self {
        let (event, events) = mpsc::unbounded_channel();
        Self {
            sent: FxHashMap::default(),
            unsent: FxHashMap::default(),
            never_sent: FxHashSet::default(),
            epoch: None,
            unsettled: Vec::new(),
            events,
            event,
            give_up: CancellationToken::new(),
        }
    }

    /// This process owns the partition in a new epoch. A fence whose append does not stand is given
    /// out again. So unless no other owner can have come in between, a claim with the fence of one
    /// that never left here may be another owner's, with its call under way.
    pub(crate) fn begin_epoch(&mut self, epoch: Epoch) {
        let last = self.epoch.replace(epoch);
        if last.is_none_or(|last| last.0.checked_add(1) != Some(epoch.0)) {
            self.never_sent.clear();
        }
    }

    /// Calls that take up a worker: in flight or about to leave.
    pub(crate) fn count(&self) -> usize {
        self.sent.len() + self.unsent.len()
    }

    /// Claims are being written: their calls leave when they are durable.
    pub(crate) fn track_unsent(&mut self, claims: &[Claim]) {
        self.unsent.extend(claims.iter().map(|claim| (claim.fence, claim.seq)));
    }

    /// The append of these claims failed: whether it stands or not, their calls have not left.
    pub(crate) fn mark_never_sent(&mut self, claims: &[Claim]) {
        for Claim { seq, fence, .. } in claims {
            self.unsent.remove(fence);
            self.never_sent.insert((*seq, *fence));
        }
    }

    /// Takes a claim off those that are about to leave; `false` when it was none of them.
    pub(crate) fn take_unsent(&mut self, fence: Fence) -> bool {
        self.unsent.remove(&fence).is_some()
    }

    /// Has an earlier call of the same operation, which is still in flight here, answer this claim.
    pub(crate) fn adopt(&mut self, claim: &Claim) -> bool {
        match self.sent.get_mut(&claim.seq).filter(|sent| sent.accepted_at == claim.accepted_at) {
            Some(sent) => {
                sent.fence = claim.fence;
                self.unsent.remove(&claim.fence);
                true
            }
            None => false,
        }
    }

    /// A call leaves.
    pub(crate) fn mark_sent(&mut self, claim: &Claim, sent_at: Time) -> CancellationToken {
        let stop = CancellationToken::new();
        let sent = InFlightCall {
            sent_with: claim.fence,
            fence: claim.fence,
            accepted_at: claim.accepted_at,
            sent_at,
            stop: stop.clone(),
        };
        self.sent.insert(claim.seq, sent);
        stop
    }

    /// A report arrived: its call is in flight no more, and it settles the claim that stands for
    /// it. Only the call that it is of ends: another one of the same operation goes on.
    pub(crate) fn finish_call(&mut self, mut report: Report) -> Report {
        if self.sent.get(&report.seq).is_some_and(|sent| sent.sent_with == report.fence)
            && let Some(sent) = self.sent.remove(&report.seq)
        {
            report.fence = sent.fence;
            report.sent_at = Some(sent.sent_at);
        }
        report
    }

    /// Tells the call of an operation to stop.
    pub(crate) fn stop(&self, seq: Seq) {
        if let Some(sent) = self.sent.get(&seq) {
            sent.stop.cancel();
        }
    }

    /// Every claim that stands for a call in flight or about to leave.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (Seq, Fence)> {
        let unsent = self.unsent.iter().map(|(fence, seq)| (*seq, *fence));
        self.sent.iter().map(|(seq, sent)| (*seq, sent.fence)).chain(unsent)
    }

    /// What is known here of a claim that the log has.
    pub(crate) fn call_status(&self, seq: Seq, fence: Fence, accepted_at: Time) -> CallStatus {
        match self.sent.get(&seq) {
            Some(sent) if sent.fence == fence && sent.accepted_at == accepted_at => {
                return CallStatus::Sent { sent_at: sent.sent_at };
            }
            _ => {}
        }
        if self.unsent.get(&fence) == Some(&seq) {
            return CallStatus::Unsent;
        }
        if self.never_sent.contains(&(seq, fence)) { CallStatus::NeverSent } else { CallStatus::Untracked }
    }

    /// What never left has been settled.
    pub(crate) fn forget_never_sent(&mut self) {
        self.never_sent.clear();
    }

    /// In flight, and answered but not settled.
    pub(crate) fn remaining_counts(&self) -> (usize, usize) {
        (self.sent.len(), self.unsettled.len())
    }
}

/// The calls of a partition, kept between the engines that a process opens on it one after the
/// other. Give each of them the same one, and a later engine settles the calls of an earlier one.
#[derive(Clone, Default)]
pub struct InFlightCalls(Arc<Mutex<Option<Calls>>>);

impl fmt::Debug for InFlightCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightCalls").finish_non_exhaustive()
    }
}

impl InFlightCalls {
    /// The calls that an engine begins with.
    pub(crate) fn take(&self) -> Calls {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|calls| !calls.give_up.is_cancelled()).unwrap_or_else(Calls::new)
    }

    /// Keeps what an engine that lost its partition leaves behind.
    pub(crate) fn keep(&self, mut calls: Calls) {
        let unsent = std::mem::take(&mut calls.unsent);
        calls.never_sent.extend(unsent.into_iter().map(|(fence, seq)| (seq, fence)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(fence: u64, accepted_at: u64) -> Claim {
        Claim {
            seq: Seq(7),
            fence: Fence(fence),
            accepted_at: Time::from_millis(accepted_at),
            until: Time::from_millis(60_000),
            kind: "http".into(),
            group: "g".into(),
            attempt: 1,
            deadline: None,
            reconcile_first: false,
        }
    }

    /// OPS-23: a late report ends only the call that it is of. The claim of another call at the same
    /// place in the log stays, and goes on being renewed.
    #[test]
    fn ops_23_a_late_report_leaves_the_next_call_alone() {
        let mut calls = Calls::new();
        calls.mark_sent(&claim(1, 10), Time::from_millis(100));
        calls.mark_sent(&claim(2, 20), Time::from_millis(200));
        let late = calls.finish_call(Report::without_call(Seq(7), Fence(1), Verdict::Done));
        assert_eq!((late.fence, late.sent_at), (Fence(1), None));
        assert_eq!(calls.claims().collect::<Vec<_>>(), [(Seq(7), Fence(2))]);
        let own = calls.finish_call(Report::without_call(Seq(7), Fence(2), Verdict::Done));
        assert_eq!(own.sent_at, Some(Time::from_millis(200)));
        assert_eq!(calls.count(), 0);
    }
}
