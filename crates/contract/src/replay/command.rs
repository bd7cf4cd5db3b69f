//! A command to a model as a value, so that two models can be given the same one.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fact::Shape;
use tidegate_core::model::{Accept, Cancel, Ended, LimitRefusal, NotNow, Resolution, Settle, Take};
use tidegate_core::{Draft, Fact, Fence, Hint, Model, Seq, Time, Verdict};

/// A command and the time it is given at.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) now: Time,
    pub(super) order: Order,
}

/// What is wanted of the model.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Accept(Draft),
    Reopen(Seq, Time, Draft),
    Take { n: usize, lease: Duration, chance: u32 },
    Settle { seq: Seq, fence: Fence, verdict: Verdict, hints: Vec<Hint>, chance: u32 },
    Renew { seq: Seq, fence: Fence, until: Time },
    Send { seq: Seq, fence: Fence },
    Cancel(Seq),
    Resolve(Seq, Resolution),
    Pause(Arc<str>),
    Resume(Arc<str>),
    Configure(Arc<str>, Shape),
    SetLimit(Arc<str>, Shape),
    Thaw(Arc<str>),
}

/// What the model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Accept(Accept),
    Reopen(Option<Accept>),
    Take(Take),
    Settle(Settle),
    Renewed(bool),
    Sent(bool),
    Cancel(Cancel),
    Resolve(Result<Option<Ended>, NotNow>),
    Paused,
    Resume(Result<(), NotNow>),
    Configured(Result<bool, LimitRefusal>),
    Limit(Result<(), LimitRefusal>),
}

impl Command {
    /// Gives it to a model.
    pub(super) fn apply(&self, model: &mut Model, facts: &mut Vec<Fact>) -> Answered {
        let now = self.now;
        match &self.order {
            Order::Accept(draft) => Answered::Accept(model.accept(now, draft.clone(), facts)),
            Order::Reopen(seq, at, draft) => {
                Answered::Reopen(model.reopen(now, (*seq, *at), draft.clone(), facts))
            }
            Order::Take { n, lease, chance } => Answered::Take(model.take(now, *n, *lease, *chance, facts)),
            Order::Settle { seq, fence, verdict, hints, chance } => {
                Answered::Settle(model.settle(now, *seq, *fence, verdict.clone(), hints, *chance, facts))
            }
            Order::Renew { seq, fence, until } => Answered::Renewed(model.renew(*seq, *fence, *until, facts)),
            Order::Send { seq, fence } => Answered::Sent(model.send(now, *seq, *fence, facts)),
            Order::Cancel(seq) => Answered::Cancel(model.cancel(now, *seq, facts)),
            Order::Resolve(seq, resolution) => {
                Answered::Resolve(model.resolve(now, *seq, *resolution, facts))
            }
            Order::Pause(group) => {
                model.pause(now, group, &"suite".into(), &"to see".into(), facts);
                Answered::Paused
            }
            Order::Resume(group) => Answered::Resume(model.resume(now, group, facts)),
            Order::Configure(limit, shape) => {
                Answered::Configured(model.configure(now, limit, *shape, facts))
            }
            Order::SetLimit(limit, shape) => Answered::Limit(model.set_limit(now, limit, *shape, facts)),
            Order::Thaw(limit) => Answered::Limit(model.thaw(now, limit, facts)),
        }
    }
}

impl Answered {
    /// Whether it is a take that could have given more.
    pub(super) fn left_room(&self, command: &Command) -> bool {
        match (self, &command.order) {
            (Self::Take(take), Order::Take { n, .. }) => take.claims.len() < *n,
            _ => false,
        }
    }
}
