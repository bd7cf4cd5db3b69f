//! Operator commands: cancel, withdraw, resolve, pause, resume.

use std::sync::Arc;

use super::Model;
use super::settle::EndedOperation;
use crate::fact::Fact;
use crate::fault::{Fault, FaultClass, RESOLVED_AS_FAILED};
use crate::id::{Fence, Seq};
use crate::state::{EndState, State};
use crate::time::Time;
use crate::verdict::Verdict;

/// The outcome of a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The operation ended at once.
    Ended(EndedOperation),
    /// The operation is running: its worker must be notified.
    Requested(Fence),
    /// The operation is not active: it has ended, or never existed.
    NotActive,
}

/// An operator's ruling on an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The call took effect.
    Succeeded,
    /// The call did not take effect, and must not be repeated.
    Failed,
    /// Send it again.
    Repeat,
}

/// Why an operator's command does not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRefusal {
    /// There is no such active operation or group.
    NotActive,
    /// The outcome of this operation is not unknown.
    NotUnknown,
    /// The group is neither paused nor held.
    NotStopped,
    /// The group is paused already.
    AlreadyPaused,
    /// The outcome of this operation must be resolved first.
    Unresolved(Seq),
}

impl Model {
    /// Cancels an operation.
    pub fn cancel(&mut self, now: Time, seq: Seq, facts: &mut Vec<Fact>) -> CancelOutcome {
        let now = self.now(now);
        let Some(entry) = self.entry_of(seq) else { return CancelOutcome::NotActive };
        let run = self.groups[entry.group.at()].run.as_ref();
        if let Some(fence) = run.filter(|_| entry.prev.is_none()).map(|run| run.fence) {
            if !entry.cancel_requested {
                self.decide(facts, Fact::CancelRequested { seq });
                self.bound_cancel(now, seq, facts);
            }
            return CancelOutcome::Requested(fence);
        }
        let ended = self.end_waiting(now, seq, EndState::Canceled, None, facts);
        self.rearm(now);
        CancelOutcome::Ended(ended)
    }

    /// Cancels an operation whose call is not in flight; `None` when it is, or when the operation
    /// is not active.
    pub fn withdraw(&mut self, now: Time, seq: Seq, facts: &mut Vec<Fact>) -> Option<EndedOperation> {
        let state = self.active(seq)?.state;
        if state == State::Running {
            return None;
        }
        match self.cancel(now, seq, facts) {
            CancelOutcome::Ended(ended) => Some(ended),
            CancelOutcome::Requested(_) | CancelOutcome::NotActive => None,
        }
    }

    /// Cancels an operation that no one waits for any more. A call in flight completes, and no
    /// further attempt follows it; `None` in that case, and when the operation is not active. One
    /// that awaits its completion is left alone.
    pub fn abandon(&mut self, now: Time, seq: Seq, facts: &mut Vec<Fact>) -> Option<EndedOperation> {
        let entry = self.entry_of(seq)?;
        let is_news = !entry.cancel_requested && self.awaiting_since(entry).is_none();
        if self.active(seq)?.state != State::Running {
            return self.withdraw(now, seq, facts);
        }
        if is_news {
            self.decide(facts, Fact::CancelRequested { seq });
        }
        None
    }

    /// Lets an operation start now that a throttled response made wait, without closing a limit;
    /// returns `false` when it does not wait for that.
    pub fn wake_operation(&mut self, now: Time, seq: Seq, facts: &mut Vec<Fact>) -> bool {
        let now = self.now(now);
        let Some(entry) = self.entry_of(seq).filter(|entry| entry.prev.is_none()) else { return false };
        let group = &self.groups[entry.group.at()];
        let class = entry.fault.as_ref().map(|fault| fault.class);
        let is_asleep = group.run.is_none() && group.not_before > now && entry.not_before <= now;
        if !is_asleep || class != Some(FaultClass::RateLimited) {
            return false;
        }
        self.decide(facts, Fact::Woken { seq, at: now });
        self.rearm(now);
        true
    }

    /// Resolves an operation whose outcome is unknown.
    ///
    /// # Errors
    /// When its outcome is not unknown.
    pub fn resolve(
        &mut self,
        now: Time,
        seq: Seq,
        resolution: Resolution,
        facts: &mut Vec<Fact>,
    ) -> Result<Option<EndedOperation>, ControlRefusal> {
        let now = self.now(now);
        let entry = self.entry_of(seq).ok_or(ControlRefusal::NotActive)?;
        let held = self.groups[entry.group.at()].held.as_ref();
        if !held.is_some_and(|held| held.unknown && held.seq == seq) {
            return Err(ControlRefusal::NotUnknown);
        }
        let ended = match resolution {
            Resolution::Succeeded => Some(self.end_waiting(now, seq, EndState::Succeeded, None, facts)),
            Resolution::Failed => {
                let class = entry.fault.as_ref().map_or(FaultClass::Transient, |last| last.class);
                let cause = Fault::new(class, RESOLVED_AS_FAILED);
                let mut ended = self.end_waiting(now, seq, EndState::Failed, Some(cause), facts);
                // The operator knows that it did not happen.
                ended.fault = ended.fault.map(|fault| Fault { may_have_happened: false, ..fault });
                Some(ended)
            }
            Resolution::Repeat => {
                self.decide(facts, Fact::Repeated { seq, at: now });
                None
            }
        };
        self.rearm(now);
        Ok(ended)
    }

    /// Resolves an attempt whose outcome is unknown as a late report about it says: an operation
    /// that waits for an operator, or for its next attempt, which is not needed any more. An
    /// attempt that was not the last one changes nothing.
    ///
    /// # Errors
    /// When the operation is in progress, or this is not its last attempt.
    pub fn resolve_late(
        &mut self,
        now: Time,
        seq: Seq,
        attempt: u16,
        verdict: Verdict,
        facts: &mut Vec<Fact>,
    ) -> Result<Option<EndedOperation>, ControlRefusal> {
        let entry = self.entry_of(seq).ok_or(ControlRefusal::NotActive)?;
        if entry.attempt != attempt {
            return Err(ControlRefusal::NotUnknown);
        }
        let may_repeat = attempt < entry.max_attempts;
        let (resolution, fault) = match verdict {
            Verdict::Done => (Resolution::Succeeded, None),
            Verdict::Retry { .. } if may_repeat => (Resolution::Repeat, None),
            Verdict::Retry { fault, .. } | Verdict::Rejected(fault) => (Resolution::Failed, Some(fault)),
            _ => return Err(ControlRefusal::NotUnknown),
        };
        if self.active(seq).is_some_and(|active| matches!(active.state, State::Waiting | State::Queued)) {
            let state = match resolution {
                Resolution::Succeeded => EndState::Succeeded,
                Resolution::Failed => EndState::Failed,
                // It is going to be sent again anyway.
                Resolution::Repeat => return Err(ControlRefusal::NotUnknown),
            };
            let now = self.now(now);
            let ended = self.end_waiting(now, seq, state, fault.clone(), facts);
            self.rearm(now);
            return Ok(Some(EndedOperation { fault, ..ended }));
        }
        let ended = self.resolve(now, seq, resolution, facts)?;
        Ok(ended.map(|ended| EndedOperation { fault, ..ended }))
    }

    /// Pauses a group: the running operation finishes, and no further one is taken. One that is
    /// paused already stays as it is, except that a new reason, and whoever gives it, replaces the
    /// old one.
    pub fn pause(
        &mut self,
        now: Time,
        group: &Arc<str>,
        by: &Arc<str>,
        reason: &Arc<str>,
        facts: &mut Vec<Fact>,
    ) {
        let now = self.now(now);
        let known = self.by_group.get(group).map(|ix| &self.groups[ix.at()]);
        if reason.is_empty() && known.is_some_and(|known| known.paused.is_some()) {
            return;
        }
        let fact = Fact::Paused {
            group: Arc::clone(group),
            at: now,
            by: Arc::clone(by),
            reason: Arc::clone(reason),
        };
        self.decide(facts, fact);
        self.rearm(now);
    }

    /// Pauses a group that is not paused: no one's reason is replaced.
    ///
    /// # Errors
    /// When it is paused already.
    pub fn pause_unpaused(
        &mut self,
        now: Time,
        group: &Arc<str>,
        by: &Arc<str>,
        reason: &Arc<str>,
        facts: &mut Vec<Fact>,
    ) -> Result<(), ControlRefusal> {
        let known = self.by_group.get(group).map(|ix| &self.groups[ix.at()]);
        if known.is_some_and(|known| known.paused.is_some()) {
            return Err(ControlRefusal::AlreadyPaused);
        }
        self.pause(now, group, by, reason, facts);
        Ok(())
    }

    /// Resumes a paused or held group.
    ///
    /// # Errors
    /// When it is neither, or when an outcome must be resolved first.
    pub fn resume(
        &mut self,
        now: Time,
        group: &Arc<str>,
        facts: &mut Vec<Fact>,
    ) -> Result<(), ControlRefusal> {
        let now = self.now(now);
        let ix = self.by_group.get(group).ok_or(ControlRefusal::NotActive)?;
        let state = &self.groups[ix.at()];
        match (&state.paused, &state.held) {
            (None, None) => return Err(ControlRefusal::NotStopped),
            (None, Some(held)) if held.unknown => return Err(ControlRefusal::Unresolved(held.seq)),
            _ => {}
        }
        self.decide(facts, Fact::Resumed { group: Arc::clone(group), at: now });
        Ok(())
    }
}
