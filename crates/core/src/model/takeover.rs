//! Takes over the claims that a new owner of the partition finds in the log: what it knows about
//! the call of a claim decides whether the claim stands or is settled. On a shared store the
//! process that made the call may be alive, so its claim stands until it expires; the lock of an
//! embedded store proves that process dead. A claim of a remote worker stands, whichever owner
//! died.

use super::{ClaimStatus, Model};
use crate::fact::{Fact, SettleEffect, SettledClaim};
use crate::fault::{Fault, FaultClass};
use crate::id::{Fence, Seq};
use crate::time::Time;
use crate::verdict::Verdict;

/// What a new owner knows about the call of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimedCall {
    /// It has been in flight in this process since then.
    InFlight(Time),
    /// This process is about to send it.
    Unsent,
    /// It was never sent.
    NeverSent,
    /// Another process may have sent it and may still wait for its response.
    Elsewhere,
    /// The process that sent it is gone.
    Orphaned,
    /// A remote worker has it, and could not reach an owner for a while.
    RemoteWorker,
}

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeoverOutcome {
    /// It stands until its call is settled or it expires.
    Kept {
        /// Whether a cancel was requested, which must reach the call.
        cancel_requested: bool,
    },
    /// No one works on it any more: it is to be settled with this verdict.
    Settle(Verdict),
}

impl Model {
    /// Takes over a claim, which is renewed until `until` if this process works on it, and holds
    /// until then at least if a remote worker does. `None` when there is no such claim.
    pub fn take_over(
        &mut self,
        now: Time,
        (seq, fence): (Seq, Fence),
        call: ClaimedCall,
        until: Time,
        facts: &mut Vec<Fact>,
    ) -> Option<TakeoverOutcome> {
        let ClaimStatus { cancel_requested, awaiting_since, .. } = self.claim_status(seq, fence)?;
        let is_overdue = self.entry_of(seq).is_some_and(|entry| self.is_overdue(entry.group, self.now(now)));
        match call {
            // While no one could poll it, its time has passed: it is polled again.
            ClaimedCall::RemoteWorker | ClaimedCall::Elsewhere | ClaimedCall::Orphaned if is_overdue => {
                self.mark_sent(now, seq, fence, facts);
                return Some(TakeoverOutcome::Settle(Verdict::Returned));
            }
            ClaimedCall::InFlight(sent_at) => {
                self.renew(seq, fence, until, facts);
                self.mark_sent(sent_at, seq, fence, facts);
            }
            ClaimedCall::Unsent => {
                self.renew(seq, fence, until, facts);
            }
            ClaimedCall::RemoteWorker => {
                if self.lease_end(seq).is_some_and(|end| end < until) {
                    self.renew(seq, fence, until, facts);
                }
                self.mark_sent(now, seq, fence, facts);
            }
            // A poll changes nothing, so no one has to wait for one that is lost.
            ClaimedCall::Elsewhere | ClaimedCall::Orphaned if awaiting_since.is_some() => {
                self.mark_sent(now, seq, fence, facts);
                let fault = Fault::new(FaultClass::Transient, "the poll was lost with its worker");
                return Some(TakeoverOutcome::Settle(Verdict::Unknown(fault)));
            }
            // Its claim has to expire first, and its call may arrive at any moment from now on.
            ClaimedCall::Elsewhere => {
                self.mark_sent(now, seq, fence, facts);
            }
            ClaimedCall::NeverSent => return Some(TakeoverOutcome::Settle(Verdict::Returned)),
            ClaimedCall::Orphaned => {
                let message = "the process stopped while the call was in flight";
                let fault = Fault::new(FaultClass::Transient, message);
                return Some(TakeoverOutcome::Settle(Verdict::Lost(fault)));
            }
        }
        Some(TakeoverOutcome::Kept { cancel_requested })
    }

    /// Awaits jobs that can be polled until `until` at least, and has those polled at once whose
    /// time would be up before: no one could poll them while they had no owner.
    pub fn await_again(&mut self, now: Time, until: Time, facts: &mut Vec<Fact>) {
        let now = self.now(now);
        let due = self.awaiting.iter().take_while(|((end, _), _)| *end < until);
        let pollable = due.filter_map(|((_, fence), ix)| {
            let group = &self.groups[ix.at()];
            group.run.as_ref()?.awaiting()?.poll_at?;
            Some((self.head_of(group)?.seq, *fence))
        });
        for (seq, fence) in pollable.collect::<Vec<_>>() {
            let effect = SettleEffect::Awaiting { poll_at: Some(now), until };
            let settled = SettledClaim { seq, fence, at: now, effect, fault: None, hints: Vec::new() };
            self.decide(facts, Fact::Settled(Box::new(settled)));
        }
        self.rearm(now);
    }

    /// When the lease of a claim's worker expires.
    fn lease_end(&self, seq: Seq) -> Option<Time> {
        let run = self.groups[self.entry_of(seq)?.group.at()].run.as_ref()?;
        Some(run.until)
    }
}
