//! Steps that would wait for long for a limit of their own: they go last, so that no other step
//! waits with them.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate::Reason;

use super::queue::GuildQueue;
use crate::plan::{Action, GuildRoute, Plan, PlanStep, StepTarget};

/// A shorter wait is waited out.
const LONG: Duration = Duration::from_secs(30);

/// A limit that is counted apart from the route's, so that other calls need not wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScarceLimit {
    /// Changes of the name or topic of one channel.
    Renames,
    /// New roles of the guild.
    RoleCreates,
}

impl ScarceLimit {
    /// Returns the limit that an operation waits for, if it does so for long.
    pub(super) fn of_wait(upstream: &str, reason: &Reason, left: Option<Duration>) -> Option<Self> {
        if left.is_none_or(|left| left < LONG) || reason.behind.is_some() {
            return None;
        }
        Self::of_name(limit_below(upstream, reason)?)
    }

    fn of_name(name: &str) -> Option<Self> {
        match name.split(' ').next()? {
            "renames" => Some(Self::Renames),
            "role-creates" => Some(Self::RoleCreates),
            _ => None,
        }
    }
}

fn limit_below<'r>(upstream: &str, reason: &'r Reason) -> Option<&'r str> {
    reason.name.as_deref()?.strip_prefix(upstream)?.strip_prefix('/')
}

impl GuildQueue<'_> {
    /// Says what an operation waits for, without the names that an upstream and its limits have in
    /// the queue.
    pub(super) fn describe_wait(&self, reason: &Reason) -> String {
        let what = match limit_below(self.upstream, reason) {
            _ if reason.behind.is_some() => return reason.because.clone(),
            Some(name) => match ScarceLimit::of_name(name) {
                Some(ScarceLimit::Renames) => "two changes of a channel's name or topic in ten minutes",
                Some(ScarceLimit::RoleCreates) => "250 new roles in 48 hours",
                None if name == "global" => "the limit on all calls",
                None => "the limit of the route",
            },
            None if reason.name.as_deref() == Some(self.upstream) => "Discord to accept calls again",
            None => return reason.because.clone(),
        };
        format!("waiting for {what}")
    }
}

/// The steps that a run has put off.
#[derive(Debug, Default)]
pub(super) struct PostponedSteps {
    targets: BTreeSet<StepTarget>,
    /// Whether the round that runs has put off anything.
    is_any_now: bool,
    /// Whether no role can be created in this round.
    no_roles: bool,
}

impl PostponedSteps {
    /// Starts a round: sorts its steps so that those that were put off come after all others, and
    /// removals after them.
    pub(super) fn begin_round(&mut self, plan: &Plan, open: &mut [&PlanStep]) {
        (self.is_any_now, self.no_roles) = (false, false);
        if open.iter().any(|step| self.targets.contains(&step.target)) {
            open.sort_by_key(|step| match step.action {
                Action::Remove if !plan.prunes_first => 3,
                _ if self.targets.contains(&step.target) => 2,
                Action::Order => 1,
                _ => 0,
            });
        }
    }

    /// Returns whether a step may be put off: once, and only if others are left that it holds up.
    pub(super) fn can_postpone(&self, step: &PlanStep, rest: &[&PlanStep]) -> bool {
        let is_held_up = |other: &&PlanStep| {
            !matches!(other.action, Action::Remove | Action::Order) && !self.targets.contains(&other.target)
        };
        !self.targets.contains(&step.target) && rest.iter().any(is_held_up)
    }

    /// Puts a step off.
    pub(super) fn record(&mut self, step: &PlanStep, limit: ScarceLimit) {
        self.targets.insert(step.target.clone());
        self.is_any_now = true;
        self.no_roles |= limit == ScarceLimit::RoleCreates;
    }

    /// Returns whether a step has to wait for the next round: nothing is removed before its
    /// replacement exists, and one role that waits speaks for all.
    pub(super) fn holds(&mut self, plan: &Plan, step: &PlanStep) -> bool {
        let creates_role = step.call.as_ref().is_some_and(|call| call.route == GuildRoute::RoleCreate);
        if creates_role && self.no_roles {
            self.targets.insert(step.target.clone());
            return true;
        }
        self.is_any_now && step.action == Action::Remove && !plan.prunes_first
    }
}
