//! A command to a model as a value, so that two models can receive the same one.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fact::LimitShape;
use tidegate_core::model::{
    AcceptOutcome, CancelOutcome, ControlRefusal, EndedOperation, LimitRefusal, RerunRefusal, Resolution,
    SettleOutcome, TakeOutcome,
};
use tidegate_core::{Draft, EndState, Fact, Fence, Hint, Model, Seq, Time, Verdict};

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
    Take { n: usize, lease: Duration, chance: u32 },
    Settle { seq: Seq, fence: Fence, verdict: Verdict, hints: Vec<Hint>, chance: u32 },
    Renew { seq: Seq, fence: Fence, until: Time },
    Send { seq: Seq, fence: Fence },
    Cancel(Seq),
    Resolve(Seq, Resolution),
    Pause(Arc<str>),
    Resume(Arc<str>),
    Configure(Arc<str>, LimitShape),
    SetLimit(Arc<str>, LimitShape),
    Thaw(Arc<str>),
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
    Resume(Result<(), ControlRefusal>),
    Configured(Result<bool, LimitRefusal>),
    Limit(Result<(), LimitRefusal>),
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
            CommandKind::Settle { seq, fence, verdict, hints, chance } => CommandOutcome::Settle(
                model.settle(now, *seq, *fence, verdict.clone(), hints, *chance, facts),
            ),
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
            CommandKind::Resume(group) => CommandOutcome::Resume(model.resume(now, group, facts)),
            CommandKind::Configure(limit, shape) => {
                CommandOutcome::Configured(model.configure(now, limit, *shape, facts))
            }
            CommandKind::SetLimit(limit, shape) => {
                CommandOutcome::Limit(model.set_limit(now, limit, *shape, facts))
            }
            CommandKind::Thaw(limit) => CommandOutcome::Limit(model.thaw(now, limit, facts)),
        }
    }
}

impl CommandOutcome {
    /// Whether it is a take that could have claimed more.
    pub(super) fn is_partial_take(&self, command: &Command) -> bool {
        match (self, &command.order) {
            (Self::Take(take), CommandKind::Take { n, .. }) => take.claims.len() < *n,
            _ => false,
        }
    }
}
