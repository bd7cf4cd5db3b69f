//! A command to a model as a value, so that two models can receive the same one.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fact::LimitShape;
use tidegate_core::model::{
    AcceptOutcome, CancelOutcome, ClaimReport, ControlRefusal, DraftRefusal, EndedOperation, LimitRefusal,
    RerunRefusal, Resolution, SettleOutcome, TakeOutcome, WorkerSlots,
};
use tidegate_core::{Alternatives, Draft, EndState, Fact, Fence, Hint, Model, Seq, Time, Verdict};

/// The kinds that the models leave to remote workers.
pub(super) const REMOTE_KINDS: [&str; 2] = ["resize", "scan"];

/// A command and its time.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) now: Time,
    pub(super) order: CommandKind,
}

/// The kind of a command.
#[derive(Clone, Debug)]
pub(super) enum CommandKind {
    Accept(Draft),
    Reopen(Seq, Time, EndState, Draft),
    Take {
        n: usize,
        lease: Duration,
        chance: u32,
    },
    /// A take for own workers and for remote ones of some kinds.
    TakeFor {
        n: usize,
        remote: Vec<(Vec<Arc<str>>, usize)>,
        lease: Duration,
        chance: u32,
    },
    Settle {
        seq: Seq,
        fence: Fence,
        verdict: Verdict,
        hints: Vec<Hint>,
        chance: u32,
    },
    Renew {
        seq: Seq,
        fence: Fence,
        until: Time,
    },
    Send {
        seq: Seq,
        fence: Fence,
    },
    Cancel(Seq),
    Resolve(Seq, Resolution),
    Pause(Arc<str>),
    Resume(Arc<str>),
    Configure(Arc<str>, LimitShape),
    SetLimit(Arc<str>, LimitShape),
    PauseUnpaused(Arc<str>),
    Thaw(Arc<str>),
    ThawClosed(Arc<str>),
    Wake(Seq),
    Rechain(Seq, Alternatives),
    /// A new owner, which awaits jobs until then at least.
    AwaitAgain(Time),
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandOutcome {
    Accept(AcceptOutcome),
    Reopen(Seq, Result<(), RerunRefusal>),
    Take(TakeOutcome),
    Settle(SettleOutcome),
    Renewed(bool),
    Sent(bool),
    Cancel(CancelOutcome),
    Resolve(Result<Option<EndedOperation>, ControlRefusal>),
    Paused,
    PausedOnce(Result<(), ControlRefusal>),
    Resume(Result<(), ControlRefusal>),
    Configured(Result<bool, LimitRefusal>),
    Limit(Result<(), LimitRefusal>),
    Woken(bool),
    Rechained(Result<bool, DraftRefusal>),
    AwaitsAgain,
}

impl Command {
    /// Applies it to a model.
    pub(super) fn apply(&self, model: &mut Model, facts: &mut Vec<Fact>) -> CommandOutcome {
        let now = self.now;
        match &self.order {
            CommandKind::Accept(draft) => CommandOutcome::Accept(model.accept(now, draft.clone(), facts)),
            CommandKind::Reopen(seq, at, ended, draft) => {
                let reopened = model.reopen(now, (*seq, *at), *ended, draft.clone(), facts);
                CommandOutcome::Reopen(*seq, reopened)
            }
            CommandKind::Take { n, lease, chance } => {
                CommandOutcome::Take(model.take(now, *n, *lease, *chance, facts))
            }
            CommandKind::TakeFor { n, remote, lease, chance } => {
                let mut slots = vec![WorkerSlots::local(*n, *lease)];
                slots.extend(remote.iter().map(|(kinds, free)| WorkerSlots {
                    kinds: Some(kinds),
                    free: *free,
                    lease: *lease,
                }));
                CommandOutcome::Take(model.take_for(now, &slots, *chance, facts))
            }
            CommandKind::Settle { seq, fence, verdict, hints, chance } => {
                let report = ClaimReport::new(*seq, *fence, verdict.clone()).with_hints(hints);
                CommandOutcome::Settle(model.settle(now, report, *chance, facts))
            }
            CommandKind::Renew { seq, fence, until } => {
                CommandOutcome::Renewed(model.renew(*seq, *fence, *until, facts))
            }
            CommandKind::Send { seq, fence } => {
                CommandOutcome::Sent(model.mark_sent(now, *seq, *fence, facts))
            }
            CommandKind::Cancel(seq) => CommandOutcome::Cancel(model.cancel(now, *seq, facts)),
            CommandKind::Resolve(seq, resolution) => {
                CommandOutcome::Resolve(model.resolve(now, *seq, *resolution, facts))
            }
            CommandKind::Pause(group) => {
                model.pause(now, group, &"suite".into(), &"to see".into(), facts);
                CommandOutcome::Paused
            }
            CommandKind::PauseUnpaused(group) => {
                let paused = model.pause_unpaused(now, group, &"suite".into(), &"once".into(), facts);
                CommandOutcome::PausedOnce(paused)
            }
            CommandKind::Resume(group) => CommandOutcome::Resume(model.resume(now, group, facts)),
            CommandKind::Configure(limit, shape) => {
                CommandOutcome::Configured(model.configure(now, limit, *shape, facts))
            }
            CommandKind::SetLimit(limit, shape) => {
                CommandOutcome::Limit(model.set_limit(now, limit, *shape, facts))
            }
            CommandKind::Thaw(limit) => CommandOutcome::Limit(model.thaw(now, limit, facts)),
            CommandKind::ThawClosed(limit) => CommandOutcome::Limit(model.thaw_closed(now, limit, facts)),
            CommandKind::Wake(seq) => CommandOutcome::Woken(model.wake_operation(now, *seq, facts)),
            CommandKind::Rechain(seq, alternatives) => {
                CommandOutcome::Rechained(model.replace_alternatives(now, *seq, alternatives.clone(), facts))
            }
            CommandKind::AwaitAgain(until) => {
                model.await_again(now, *until, facts);
                CommandOutcome::AwaitsAgain
            }
        }
    }
}

impl CommandOutcome {
    /// Checks that a take which could have claimed more left nothing that it could have, and that
    /// it gave no worker more than it asked for, or a kind that it does not execute.
    pub(super) fn check_take(&self, command: &Command, model: &Model) -> Result<(), String> {
        let Self::Take(take) = self else { return Ok(()) };
        let now = command.now.max(model.clock());
        let used = |slot: usize| take.slots.iter().filter(|used| **used == slot).count();
        let (n, remote) = match &command.order {
            CommandKind::Take { n, .. } => (*n, &[][..]),
            CommandKind::TakeFor { n, remote, .. } => (*n, &remote[..]),
            _ => return Ok(()),
        };
        if used(0) < n {
            model.check_no_stuck_groups(now)?;
        }
        for (claim, slot) in take.claims.iter().zip(&take.slots) {
            let is_accepted = match slot.checked_sub(1) {
                None => !REMOTE_KINDS.contains(&&*claim.kind),
                Some(slot) => remote[slot].0.contains(&claim.kind),
            };
            if !is_accepted {
                return Err(format!("slot {slot} got an operation of kind {}", claim.kind));
            }
        }
        for (slot, (kinds, free)) in remote.iter().enumerate() {
            match used(slot + 1) {
                more if more > *free => return Err(format!("slot {slot} got {more} of {free}")),
                used if used < *free => {
                    kinds.iter().try_for_each(|kind| model.check_no_stuck_kind(kind, now))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
