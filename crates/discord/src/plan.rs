//! The plan: takes template, live guild and journal, and returns steps in the order in which they
//! can be applied. A new plan starts from scratch: nothing is kept from an earlier one, and the
//! guild takes precedence over the journal.

mod answer;
mod bot_access;
mod call;
mod capacity;
mod channels;
mod conflict;
mod estimate;
mod field;
mod fingerprint;
mod json;
mod leftover;
mod matching;
mod messages;
mod namesake;
mod order;
mod order_change;
mod preflight;
mod removal;
mod roles;
mod schedule;
mod step;
mod text;
mod wire;

use std::collections::BTreeSet;

use crate::guild::Guild;
use crate::journal::GuildJournal;
use crate::template::{NameStyle, Template};
use crate::{Id, ObjectKey, ObjectKind};

pub use answer::unkept_fields;
pub use call::{CallBody, CallRequest, GuildRoute, PlannedCall, WriteMethod};
pub use conflict::Conflict;
pub use estimate::{Estimate, KnownLimits, Rate, duration_ms};
pub use field::FieldChange;
pub use leftover::Leftover;
pub use matching::Matches;
pub use messages::channels_to_read;
pub use namesake::Namesake;
pub use preflight::{check_standing, find_lockouts};
pub use step::{Action, Drift, PlanStep, StepTarget};
pub use text::{LineMark, PlanLine};
pub use wire::{MissingObject, ObjectRef, UnresolvedJson};

/// Options of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to remove managed objects that are no longer in the template.
    pub prune: bool,
}

/// The changes to make in a guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The guild.
    pub guild: Id,
    /// A step for everything in the template, in dependency order, including what stays as it is.
    pub steps: Vec<PlanStep>,
    /// Conflicts that people have to resolve first. With any of these, nothing may be applied.
    pub conflicts: Vec<Conflict>,
    /// Managed objects that are not in the template. With `prune` there is a step for each.
    pub leftovers: Vec<Leftover>,
    /// Objects that have the key of a managed one, and stay as they are.
    pub namesakes: Vec<Namesake>,
    /// What people should know before they apply it; none of it stops the deployment.
    pub remarks: Vec<String>,
    /// Roles in the guild now, including @everyone.
    pub roles: usize,
    /// Channels in the guild now, including categories.
    pub channels: usize,
    /// Whether there is room only after the removals, which then come first.
    pub prunes_first: bool,
    /// How the names of managed objects look.
    pub names: NameStyle,
}

impl Plan {
    /// Makes the plan.
    #[must_use]
    pub fn make(template: &Template, guild: &Guild, journal: &GuildJournal, options: Options) -> Self {
        let (matches, mut conflicts) = Matches::find(template, guild, journal);
        let mut steps = roles::steps(template, guild, journal, &matches);
        steps.extend(channels::categories(template, guild, journal, &matches));
        steps.extend(channels::channels(template, guild, journal, &matches));
        steps.extend(order::roles(template, guild, &matches));
        steps.extend(order::channels(template, guild, &matches));
        steps.extend(messages::steps(template, guild, journal, &matches, &mut conflicts));
        let leftovers = leftover::find(template, guild, journal, &steps);
        if options.prune {
            steps.extend(removal::steps(&leftovers, guild, journal));
        }
        let room = capacity::check_capacity(template, guild, &matches, &steps);
        conflicts.extend(room.conflicts);
        // An object in conflict gets no step: it would be created twice.
        steps.retain(|step| !conflicts.iter().any(|conflict| conflict.blocks(&step.target)));
        let (roles, channels) = (guild.roles.len(), guild.channels.len());
        let prunes_first = room.prunes_first;
        Self {
            guild: guild.id,
            steps,
            conflicts,
            leftovers,
            namesakes: matches.namesakes().to_vec(),
            remarks: Vec::new(),
            roles,
            channels,
            prunes_first,
            names: template.names,
        }
    }

    /// Returns the warning to people who might rename something.
    #[must_use]
    pub fn warning(&self) -> &'static str {
        self.names.warning()
    }

    /// Yields the steps that make a call.
    pub fn writes(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| step.call.is_some())
    }

    /// Returns the steps that make a call, in the order of execution: routes take turns, and what a
    /// step needs comes before it. Removals come last, unless there is no room without them. Order
    /// steps are not among them.
    #[must_use]
    pub fn scheduled_steps(&self) -> Vec<&PlanStep> {
        schedule::order(&self.steps, self.prunes_first)
            .into_iter()
            .filter_map(|at| self.steps.get(at))
            .collect()
    }

    /// Returns the first object that a step needs and that was not made yet.
    #[must_use]
    pub fn unmet_need(
        &self,
        step: &PlanStep,
        unmade: &BTreeSet<(ObjectKind, ObjectKey)>,
    ) -> Option<StepTarget> {
        let needs = step.call.iter().flat_map(schedule::dependencies);
        let mut missing = needs.filter(|(kind, key)| unmade.contains(&(*kind, (*key).clone())));
        missing.next().map(|(kind, key)| StepTarget::Object(kind, key.clone()))
    }

    /// Returns whether the guild already matches the template.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conflicts.is_empty() && self.writes().next().is_none()
    }

    /// Counts the steps of a kind that perform this action.
    #[must_use]
    pub fn count(&self, kind: ObjectKind, action: Action) -> usize {
        let of = |step: &&PlanStep| step.target.kind() == Some(kind) && step.action == action;
        self.steps.iter().filter(of).count()
    }
}

#[cfg(test)]
mod tests;
