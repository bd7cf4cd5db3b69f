//! Settles attempts: applies the verdict of the response, the remaining retry budget, and the rule
//! for unknown outcomes.

use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::entry::Entry;
use super::group::RunningClaim;
use super::health::health_of;
use super::limit::Meter;
use super::pool::LOCAL;
use crate::backoff::{Backoff, throttled, throttled_without_hint};
use crate::bounds;
use crate::fact::{Fact, SettleEffect, SettledClaim};
use crate::fault::{Fault, FaultClass};
use crate::id::{Fence, Seq};
use crate::operation::{OnFailure, OnUnknown};
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::{Blame, Hint, Verdict};

/// An operation that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOperation {
    /// Its sequence number.
    pub seq: Seq,
    /// When it ended.
    pub at: Time,
    /// How it ended.
    pub state: EndState,
    /// Attempts spent.
    pub attempt: u16,
    /// Why it did not succeed.
    pub fault: Option<Fault>,
    /// The operation of the same group whose turn it is now because of this end, and when that was
    /// accepted.
    pub next: Option<(Seq, Time)>,
    /// What it was: the model knows it no more.
    pub identity: Option<OperationIdentity>,
}

/// What an operation is, whatever becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationIdentity {
    /// When it was accepted.
    pub accepted_at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
}

/// The status of a current claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimStatus {
    /// The fence of the attempt: that of the claim, whatever poll asks about it.
    pub fence: Fence,
    /// When the operation was accepted.
    pub accepted_at: Time,
    /// Whether a cancel was requested.
    pub cancel_requested: bool,
    /// When its job was accepted; `None` when it was not. It awaits its completion, or is being
    /// polled.
    pub awaiting_since: Option<Time>,
    /// The number of this attempt; the first is 1.
    pub attempt: u16,
    /// Whether it is of a kind that is left to remote workers.
    pub is_remote: bool,
    /// The fence of the worker that has it; `None` while its job is awaited without one.
    pub worker: Option<Fence>,
}

/// What became of a claim, as whoever holds it reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimReport<'a> {
    /// The sequence number of the operation.
    pub seq: Seq,
    /// The fence of the claim, or of the poll that a worker makes now.
    pub fence: Fence,
    /// The verdict on the attempt.
    pub verdict: Verdict,
    /// What a failure counts against.
    pub blame: &'a Blame,
    /// What the response said about limits.
    pub hints: &'a [Hint],
}

impl<'a> ClaimReport<'a> {
    /// A report that says nothing about limits.
    #[must_use]
    pub const fn new(seq: Seq, fence: Fence, verdict: Verdict) -> Self {
        Self { seq, fence, verdict, blame: &Blame::ByClass, hints: &[] }
    }

    /// Sets what a failure counts against.
    #[must_use]
    pub const fn with_blame(mut self, blame: &'a Blame) -> Self {
        self.blame = blame;
        self
    }

    /// Sets what the response said about limits.
    #[must_use]
    pub const fn with_hints(mut self, hints: &'a [Hint]) -> Self {
        self.hints = hints;
        self
    }
}

/// The outcome of a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleOutcome {
    /// The settlement was applied.
    Settled {
        /// The operation, if it ended.
        ended: Option<EndedOperation>,
        /// What follows from it.
        effect: SettleEffect,
    },
    /// The caller no longer holds the claim: nothing changed.
    Stale,
}

impl Model {
    /// Settles a claim: by its own fence, or by that of the poll that a worker makes now.
    pub fn settle(
        &mut self,
        now: Time,
        report: ClaimReport<'_>,
        chance: u32,
        facts: &mut Vec<Fact>,
    ) -> SettleOutcome {
        let ClaimReport { seq, fence, verdict, blame, hints } = report;
        let (now, reporter) = (self.now(now), fence);
        let Some((entry, run)) = self.claimed(seq, fence) else { return SettleOutcome::Stale };
        let fence = run.fence;
        let attempt = entry.attempt.saturating_add(u16::from(spends_attempt(&verdict)));
        let (called_off, deadline) = (entry.cancel_requested, entry.deadline);
        let has_alternatives = entry.has_alternatives;
        let was_awaiting = self.awaiting_since(entry).is_some();
        let (next, identity) = (self.next_turn(seq), self.identity_of(seq));
        let health = health_of(&verdict, blame, now);
        let effect = self.awaiting_effect((entry, reporter), now, &verdict, chance);
        let effect = effect.or_else(|| self.chained_effect(entry, now, &verdict, chance));
        let (after, fault) = match effect {
            Some(effect) => effect,
            None => self.decide_effect(entry, now, verdict, chance),
        };
        let fault = fault.map(|fault| fault.with_earlier_doubt(entry.fault.as_deref()));
        let after = with_exhausted_limits(after, hints);
        // A job that is still awaited says nothing new about its provider.
        if !(was_awaiting && matches!(after, SettleEffect::Awaiting { .. })) {
            self.report_health((seq, fence), now, health, facts);
        }
        let settled = SettledClaim {
            seq,
            fence,
            at: now,
            effect: after.clone(),
            fault: fault.clone(),
            hints: hints.to_vec(),
        };
        self.decide(facts, Fact::Settled(Box::new(settled)));
        let ended = match &after {
            SettleEffect::Ended { state, .. } => {
                Some(EndedOperation { seq, at: now, state: *state, attempt, fault, next, identity })
            }
            SettleEffect::Throttled { .. } if was_awaiting => None,
            // What the response said about the limit applies to all, even when this operation can
            // wait no longer.
            SettleEffect::Throttled { .. } if called_off => {
                Some(self.end_waiting(now, seq, EndState::Canceled, None, facts))
            }
            SettleEffect::Throttled { until, .. } if *until >= deadline && !has_alternatives => {
                Some(self.end_waiting(now, seq, EndState::Failed, None, facts))
            }
            _ => None,
        };
        self.bound_cancel(now, seq, facts);
        self.rearm(now);
        SettleOutcome::Settled { ended, effect: after }
    }

    /// Extends a claim until `until`; returns `false` when the caller no longer holds it.
    pub fn renew(&mut self, seq: Seq, fence: Fence, until: Time, facts: &mut Vec<Fact>) -> bool {
        let Some((_, run)) = self.held_by_worker(seq, fence) else { return false };
        let fence = run.fence;
        self.decide(facts, Fact::Renewed { seq, fence, until });
        true
    }

    /// Records that the call of a claim is sent now. Until then its charges stay reserved, however
    /// long that takes. Returns `false` when that makes no difference or was recorded before.
    pub fn mark_sent(&mut self, now: Time, seq: Seq, fence: Fence, facts: &mut Vec<Fact>) -> bool {
        let now = self.now(now);
        let Some((entry, run)) = self.held_by_worker(seq, fence) else { return false };
        let fence = run.fence;
        let mut charges = entry.charges.iter().zip(&run.marks);
        let is_news = charges.any(|((limit, _), mark)| match &self.limits[limit.at()].meter {
            Meter::Bucket(bucket) => bucket.is_unsent(*mark),
            Meter::Cap(_) | Meter::Breaker(_) => false,
        });
        if is_news {
            self.decide(facts, Fact::Sent { seq, fence, at: now });
            self.rearm(now);
        }
        is_news
    }

    /// The operation whose turn it is once this one has left its group.
    pub(super) fn next_turn(&self, seq: Seq) -> Option<(Seq, Time)> {
        let entry = self.entry_of(seq).filter(|entry| entry.prev.is_none())?;
        let next = &self.entries[entry.next?.at()];
        Some((next.seq, next.at))
    }

    /// Returns the status of a claim; `None` when the caller no longer holds it.
    #[must_use]
    pub fn claim_status(&self, seq: Seq, fence: Fence) -> Option<ClaimStatus> {
        let (entry, run) = self.claimed(seq, fence)?;
        Some(ClaimStatus {
            fence: run.fence,
            accepted_at: entry.at,
            cancel_requested: entry.cancel_requested,
            awaiting_since: self.awaiting_since(entry),
            attempt: entry.attempt.saturating_add(1),
            is_remote: self.pools[usize::from(entry.kind)] != LOCAL,
            worker: run.worker(),
        })
    }

    pub(super) fn identity_of(&self, seq: Seq) -> Option<OperationIdentity> {
        let entry = self.entry_of(seq)?;
        Some(OperationIdentity {
            accepted_at: entry.at,
            group: Arc::clone(&self.groups[entry.group.at()].name),
            kind: Arc::clone(&self.kinds[usize::from(entry.kind)]),
        })
    }

    /// The fence of the current claim of an operation.
    #[must_use]
    pub fn current_fence(&self, seq: Seq) -> Option<Fence> {
        let entry = self.entry_of(seq)?;
        let run = self.groups[entry.group.at()].run.as_ref()?;
        entry.prev.is_none().then_some(run.fence)
    }

    /// When the job of an operation's claim was accepted.
    pub(super) fn awaiting_since(&self, entry: &Entry) -> Option<Time> {
        let run = self.groups[entry.group.at()].run.as_ref()?;
        Some(run.awaiting.as_ref()?.since)
    }

    /// The claim that a worker holds by this fence.
    fn held_by_worker(&self, seq: Seq, fence: Fence) -> Option<(&Entry, &RunningClaim)> {
        self.claimed(seq, fence).filter(|(_, run)| run.worker() == Some(fence))
    }

    /// The claim of this fence, or that a worker polls by it.
    pub(super) fn claimed(&self, seq: Seq, fence: Fence) -> Option<(&Entry, &RunningClaim)> {
        let entry = self.entry_of(seq)?;
        let run = self.groups[entry.group.at()].run.as_deref()?;
        let is_claimed = run.fence == fence || run.worker() == Some(fence);
        (is_claimed && entry.prev.is_none()).then_some((entry, run))
    }

    fn decide_effect(
        &self,
        entry: &Entry,
        now: Time,
        verdict: Verdict,
        chance: u32,
    ) -> (SettleEffect, Option<Fault>) {
        let last = entry.fault.as_deref();
        let verdict = in_doubt(verdict);
        // A cancel keeps what is known of a call that may have happened.
        let canceled = |fault: Option<Fault>| {
            let fault = fault.map(|fault| fault.with_earlier(last)).or_else(|| last.cloned());
            (SettleEffect::Ended { state: EndState::Canceled, hold: false }, fault)
        };
        match verdict {
            // What an accepted job means is decided before.
            Verdict::Done | Verdict::Accepted { .. } => {
                (SettleEffect::Ended { state: EndState::Succeeded, hold: false }, None)
            }
            Verdict::Canceled { may_have_happened } => {
                let fault = may_have_happened.then(|| {
                    let message = "it was canceled while in flight";
                    Fault::new(FaultClass::Transient, message).in_doubt()
                });
                canceled(fault)
            }
            // Whoever looks first does not know why the outcome is unknown.
            Verdict::Rejected(fault) if entry.reconcile_first => {
                (failure_effect(entry), Some(fault.with_earlier(last)))
            }
            Verdict::Rejected(fault) => (failure_effect(entry), Some(fault)),
            Verdict::Unknown(fault)
            | Verdict::Lost(fault)
            | Verdict::PollFailed { fault, .. }
            | Verdict::Retry { fault, .. }
                if entry.cancel_requested =>
            {
                canceled(Some(fault))
            }
            Verdict::Returned | Verdict::Unavailable(_) if entry.cancel_requested => canceled(None),
            Verdict::Returned => (SettleEffect::Returned, None),
            Verdict::Unavailable(fault) => {
                let until = now.after(bounds::UNAVAILABLE_WAIT);
                (SettleEffect::Throttled { until, closed: Vec::new() }, Some(fault.with_earlier(last)))
            }
            Verdict::Throttled { after, scope, fault } => {
                let effect = self.throttle_effect(entry, now, after, scope.as_ref(), chance);
                (effect, Some(fault.with_earlier(last)))
            }
            Verdict::Retry { after, fault } => retry_effect(entry, now, after, fault, false, chance),
            Verdict::Unknown(fault) | Verdict::Lost(fault) | Verdict::PollFailed { fault, .. } => {
                match entry.on_unknown {
                    OnUnknown::Repeat => retry_effect(entry, now, None, fault, false, chance),
                    OnUnknown::Reconcile if entry.attempt + 1 < entry.max_attempts => {
                        retry_effect(entry, now, None, fault, true, chance)
                    }
                    OnUnknown::Reconcile | OnUnknown::Ask => (SettleEffect::Held, Some(fault)),
                }
            }
        }
    }

    pub(super) fn throttle_effect(
        &self,
        entry: &Entry,
        now: Time,
        after: Option<Duration>,
        scope: Option<&Arc<str>>,
        chance: u32,
    ) -> SettleEffect {
        let closed: Vec<Arc<str>> = match scope.and_then(|name| Some((name, *self.by_limit.get(name)?))) {
            // A cap cannot be closed: its slots are taken by callers we do not know. The group
            // retries later.
            Some((_, limit)) if matches!(self.limits[limit.at()].meter, Meter::Cap(_)) => Vec::new(),
            Some((name, _)) => vec![Arc::clone(name)],
            None => self.closable_limits(entry).map(|(name, _)| Arc::clone(name)).collect(),
        };
        let streak = self.closable_limits(entry).map(|(_, throttles)| throttles).max().unwrap_or(0);
        let wait = match after {
            Some(after) => throttled(after.min(bounds::HORIZON_MAX), streak.saturating_add(1), chance),
            None => throttled_without_hint(streak.saturating_add(1), chance),
        };
        SettleEffect::Throttled { until: now.after(wait), closed }
    }

    /// The limits of an operation that a 429 closes, each with the number of consecutive ones. How
    /// long a breaker cools is reported to it apart.
    fn closable_limits<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (&'a Arc<str>, u32)> {
        entry.charges.iter().filter_map(|(ix, _)| {
            let limit = &self.limits[ix.at()];
            match &limit.meter {
                Meter::Bucket(bucket) => Some((&limit.name, bucket.throttles)),
                Meter::Breaker(_) => Some((&limit.name, 0)),
                Meter::Cap(_) => None,
            }
        })
    }
}

/// Adds the limits of which a refused call reports that nothing is left: they wait as long.
fn with_exhausted_limits(effect: SettleEffect, hints: &[Hint]) -> SettleEffect {
    let SettleEffect::Throttled { until, mut closed } = effect else { return effect };
    let is_exhausted =
        |hint: &&Hint| (hint.remaining, hint.spent) == (Some(0), Some(0)) && hint.reset_at.is_some();
    for hint in hints.iter().filter(is_exhausted) {
        if !closed.contains(&hint.limit) {
            closed.push(Arc::clone(&hint.limit));
        }
    }
    SettleEffect::Throttled { until, closed }
}

/// An attempt of unknown outcome may have happened.
fn in_doubt(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Unknown(fault) => Verdict::Unknown(fault.in_doubt()),
        Verdict::Lost(fault) => Verdict::Lost(fault.in_doubt()),
        Verdict::PollFailed { every, fault } => Verdict::PollFailed { every, fault: fault.in_doubt() },
        verdict => verdict,
    }
}

/// Whether an attempt counts against the retry budget.
const fn spends_attempt(verdict: &Verdict) -> bool {
    !matches!(
        verdict,
        Verdict::Returned | Verdict::Unavailable(_) | Verdict::Throttled { .. } | Verdict::Accepted { .. }
    )
}

pub(super) fn failure_effect(entry: &Entry) -> SettleEffect {
    SettleEffect::Ended { state: EndState::Failed, hold: entry.on_failure == OnFailure::Hold }
}

fn retry_effect(
    entry: &Entry,
    now: Time,
    after: Option<Duration>,
    fault: Fault,
    look_first: bool,
    chance: u32,
) -> (SettleEffect, Option<Fault>) {
    let failures = u32::from(entry.attempt) + 1;
    let wait = match after {
        Some(floor) => Backoff::RETRY.delay_from(floor.min(bounds::HORIZON_MAX), failures, chance),
        None => Backoff::RETRY.delay(failures, chance),
    };
    let at = now.after(wait);
    if failures >= u32::from(entry.max_attempts) || at >= entry.deadline {
        return (failure_effect(entry), Some(fault));
    }
    (SettleEffect::Retry { at, reconcile_first: look_first }, Some(fault))
}
