//! The calls of a partition that this process is responsible for: claimed and about to be sent, in
//! flight, or completed and not settled yet. They outlive the model, which is replayed after an
//! outage, and the engine, which may be followed by another one in the same process. So a live
//! process never resends a call it still waits for, and never loses a response.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tidegate_core::model::{Claim, ClaimedCall};
use tidegate_core::{Fence, Seq, Time, Verdict};
use tidegate_store::log::Epoch;
use tokio::sync::{SetOnce, mpsc};
use tokio_util::sync::CancellationToken;

use crate::carry::{BoxedReport, ReadyCall};
use crate::owner::{FetchedClaim, HandOut, ReadAheadOutcome};

/// The bytes of responses that are kept while the log cannot be written.
const UNSETTLED_LEN_MAX: usize = 64 * 1024 * 1024;

/// An event of a call.
pub(crate) enum CallEvent {
    /// An attempt has ended.
    Reported(BoxedReport),
    /// The payloads of claims were read.
    Fetched(Vec<(Claim, Result<ReadyCall, Verdict>)>),
    /// The payloads of claims for remote workers were read.
    WorkFetched(Box<HandOut>, Vec<FetchedClaim>),
    /// Payloads were read ahead.
    ReadAhead(ReadAheadOutcome),
}

/// Tells the task of a call to stop. Each call has one, so it takes no lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSignal(Arc<SetOnce<()>>);

impl StopSignal {
    pub(crate) fn stop(&self) {
        // It may be stopped already.
        let _ = self.0.set(());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.initialized()
    }

    pub(crate) async fn stopped(&self) {
        self.0.wait().await;
    }
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    /// The fence it was sent with, which its report carries.
    pub sent_with: Fence,
    /// The claim that its report settles: a later one when its operation was claimed again since.
    pub fence: Fence,
    /// Identifies its operation, together with the sequence number.
    pub accepted_at: Time,
    pub sent_at: Time,
    /// Cancels the call.
    pub stop: StopSignal,
}

pub(crate) struct Calls {
    sent: FxHashMap<Seq, InFlightCall>,
    /// Claims whose calls have not been sent yet.
    unsent: FxHashMap<Fence, Seq>,
    /// Claims of appends that may or may not have succeeded, whose calls have not been sent.
    never_sent: FxHashSet<(Seq, Fence)>,
    /// The last epoch in which this process owned the partition.
    epoch: Option<Epoch>,
    /// Reports whose settlement is not durable yet.
    unsettled: Vec<BoxedReport>,
    pub(crate) events: mpsc::UnboundedReceiver<CallEvent>,
    pub(crate) event: mpsc::UnboundedSender<CallEvent>,
    /// Canceled at the end of a drain: calls in flight are abandoned.
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

    /// Starts a new epoch in which this process owns the partition. The fence of an append that did
    /// not succeed is reused. So unless no other owner can have come in between, a claim with the
    /// fence of one that was never sent by this process may be another owner's, with its call in
    /// flight.
    pub(crate) fn begin_epoch(&mut self, epoch: Epoch) {
        let last = self.epoch.replace(epoch);
        if last.is_none_or(|last| last.0.checked_add(1) != Some(epoch.0)) {
            self.never_sent.clear();
        }
    }

    /// The number of calls that occupy a worker: in flight or about to be sent.
    pub(crate) fn count(&self) -> usize {
        self.sent.len() + self.unsent.len()
    }

    /// Tracks claims that are being written: their calls are sent when they are durable.
    pub(crate) fn track_unsent(&mut self, claims: &[Claim]) {
        self.unsent.extend(claims.iter().map(|claim| (claim.fence, claim.seq)));
    }

    /// Records that the append of these claims failed: whether or not it was written, their calls
    /// were not sent.
    pub(crate) fn mark_never_sent(&mut self, claims: &[Claim]) {
        for Claim { seq, fence, .. } in claims {
            self.unsent.remove(fence);
            self.never_sent.insert((*seq, *fence));
        }
    }

    /// Removes a claim from those about to be sent; `false` when it was none of them.
    pub(crate) fn take_unsent(&mut self, fence: Fence) -> bool {
        self.unsent.remove(&fence).is_some()
    }

    /// Lets an earlier call of the same operation, still in flight in this process, settle this
    /// claim.
    pub(crate) fn adopt(&mut self, claim: &Claim) -> bool {
        // A poll does not wait for the response to the submit, which may never come.
        let is_own_submit = |sent: &InFlightCall| claim.poll && sent.fence == claim.attempt_fence;
        let is_same =
            |sent: &&mut InFlightCall| sent.accepted_at == claim.accepted_at && !is_own_submit(sent);
        match self.sent.get_mut(&claim.seq).filter(is_same) {
            Some(sent) => {
                sent.fence = claim.fence;
                self.unsent.remove(&claim.fence);
                true
            }
            None => false,
        }
    }

    /// Records that a call is sent.
    pub(crate) fn mark_sent(&mut self, claim: &Claim, sent_at: Time) -> StopSignal {
        let stop = StopSignal::default();
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

    /// Takes a report: its call is no longer in flight, and the report settles the call's current
    /// claim. It ends only the call that it belongs to: another call of the same operation
    /// continues.
    pub(crate) fn finish_call(&mut self, mut report: BoxedReport) -> BoxedReport {
        if self.sent.get(&report.seq).is_some_and(|sent| sent.sent_with == report.fence)
            && let Some(sent) = self.sent.remove(&report.seq)
        {
            report.fence = sent.fence;
            report.sent_at = Some(sent.sent_at);
        }
        report
    }

    /// Cancels the call of a claim. Another call at the same position in the log continues.
    pub(crate) fn stop(&self, seq: Seq, fence: Fence) {
        if let Some(sent) = self.sent.get(&seq).filter(|sent| sent.fence == fence) {
            sent.stop.stop();
        }
    }

    /// Abandons the call of a claim that was completed from outside: its report settles nothing any
    /// more, and must not settle a later claim of the same operation.
    pub(crate) fn abandon(&mut self, seq: Seq, fence: Fence) {
        if self.sent.get(&seq).is_some_and(|sent| sent.fence == fence)
            && let Some(sent) = self.sent.remove(&seq)
        {
            sent.stop.stop();
        }
    }

    /// Iterates over the claims of calls in flight or about to be sent.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (Seq, Fence)> {
        let unsent = self.unsent.iter().map(|(fence, seq)| (*seq, *fence));
        self.sent.iter().map(|(seq, sent)| (*seq, sent.fence)).chain(unsent)
    }

    /// What this process knows about the call of a claim in the log; `None` when it is not its own.
    pub(crate) fn claimed_call(&self, seq: Seq, fence: Fence, accepted_at: Time) -> Option<ClaimedCall> {
        match self.sent.get(&seq) {
            Some(sent) if sent.fence == fence && sent.accepted_at == accepted_at => {
                return Some(ClaimedCall::InFlight(sent.sent_at));
            }
            _ => {}
        }
        if self.unsent.get(&fence) == Some(&seq) {
            return Some(ClaimedCall::Unsent);
        }
        self.never_sent.contains(&(seq, fence)).then_some(ClaimedCall::NeverSent)
    }

    /// Keeps a report until its settlement is durable; its body only while there is room for it.
    pub(crate) fn keep_unsettled(&mut self, mut report: BoxedReport) {
        let kept: usize = self.unsettled.iter().map(|report| report.body.len()).sum();
        if kept + report.body.len() > UNSETTLED_LEN_MAX {
            tracing::warn!(
                seq = report.seq.0,
                "too many responses wait for the log: one is kept without its body"
            );
            report.body.clear();
        }
        self.unsettled.push(report);
    }

    /// Takes the reports whose settlement is not durable yet.
    pub(crate) fn take_unsettled(&mut self) -> Vec<BoxedReport> {
        std::mem::take(&mut self.unsettled)
    }

    /// Forgets the claims that were never sent, once they are settled.
    pub(crate) fn forget_never_sent(&mut self) {
        self.never_sent.clear();
    }

    /// The number of calls in flight, and of those completed but not settled.
    pub(crate) fn remaining_counts(&self) -> (usize, usize) {
        (self.sent.len(), self.unsettled.len())
    }
}

/// The calls of a partition, kept between the engines that a process opens on it one after the
/// other. Give each of them the same value, and a later engine settles the calls of an earlier one.
#[derive(Clone, Default)]
pub struct InFlightCalls(Arc<Mutex<Option<Calls>>>);

impl fmt::Debug for InFlightCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightCalls").finish_non_exhaustive()
    }
}

impl InFlightCalls {
    /// Takes the calls that an engine starts with.
    pub(crate) fn take(&self) -> Calls {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|calls| !calls.give_up.is_cancelled()).unwrap_or_else(Calls::new)
    }

    /// Keeps the calls of an engine that lost its partition.
    pub(crate) fn keep(&self, mut calls: Calls) {
        let unsent = std::mem::take(&mut calls.unsent);
        calls.never_sent.extend(unsent.into_iter().map(|(fence, seq)| (seq, fence)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carry::Report;

    fn claim(fence: u64, accepted_at: u64) -> Claim {
        Claim {
            seq: Seq(7),
            fence: Fence(fence),
            attempt_fence: Fence(fence),
            accepted_at: Time::from_millis(accepted_at),
            until: Time::from_millis(60_000),
            kind: "http".into(),
            group: "g".into(),
            attempt: 1,
            deadline: None,
            reconcile_first: false,
            in_doubt: false,
            on_unknown: tidegate_core::OnUnknown::Ask,
            poll: false,
            cancel_requested: false,
            alternative: None,
        }
    }

    /// OPS-23: a late report ends only the call that it belongs to. The claim of another call at
    /// the same position in the log stays, and is still renewed.
    #[test]
    fn ops_23_a_late_report_leaves_the_next_call_alone() {
        let mut calls = Calls::new();
        calls.mark_sent(&claim(1, 10), Time::from_millis(100));
        calls.mark_sent(&claim(2, 20), Time::from_millis(200));
        let late = calls.finish_call(Report::without_call(Seq(7), Fence(1), Verdict::Done).into());
        assert_eq!((late.fence, late.sent_at), (Fence(1), None));
        assert_eq!(calls.claims().collect::<Vec<_>>(), [(Seq(7), Fence(2))]);
        let own = calls.finish_call(Report::without_call(Seq(7), Fence(2), Verdict::Done).into());
        assert_eq!(own.sent_at, Some(Time::from_millis(200)));
        assert_eq!(calls.count(), 0);
    }

    /// OPS-8: while the log cannot be written every outcome is kept, and bodies up to a bound.
    #[test]
    fn ops_8_the_responses_that_wait_for_the_log_are_bounded() {
        const LEN: usize = 8 * 1024 * 1024;
        let mut calls = Calls::new();
        let body = bytes::Bytes::from(vec![0; LEN]);
        for fence in 0..20 {
            let report = Report::without_call(Seq(fence), Fence(fence), Verdict::Done);
            calls.keep_unsettled(Report { body: body.clone(), ..report }.into());
        }
        let kept = calls.take_unsettled();
        assert_eq!(kept.len(), 20);
        assert_eq!(kept.iter().filter(|report| !report.body.is_empty()).count(), UNSETTLED_LEN_MAX / LEN);
        assert!(kept.iter().all(|report| report.verdict == Verdict::Done));
    }

    /// OPS-23: a cancel stops the call of the claim that it was requested for, also when that claim
    /// is a later one, and no other.
    #[test]
    fn ops_23_a_cancel_stops_the_call_of_its_claim_only() {
        let mut calls = Calls::new();
        let stop = calls.mark_sent(&claim(2, 20), Time::from_millis(200));
        calls.stop(Seq(7), Fence(1));
        assert!(!stop.is_stopped(), "that claim had another call");
        assert!(calls.adopt(&claim(3, 20)));
        calls.stop(Seq(7), Fence(2));
        assert!(!stop.is_stopped(), "it settles a later claim now");
        calls.stop(Seq(7), Fence(3));
        assert!(stop.is_stopped());
    }
}
