//! What one run has tried with each object: it bounds the writes, names what did not stick, and
//! collects the failures, so that every run ends and says the truth.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{Fault, FaultClass};

use super::error::{BlockedStep, FailureCause, StepFailure};
use crate::plan::{Action, FieldChange, Plan, PlanStep, StepTarget};

/// Writes to one object that succeed in one run: one, and one more for what did not stick.
const APPLIED_MAX: u32 = 2;
/// Tries of a step that may or may not have happened: each is looked for before the next one.
const UNSURE_MAX: u32 = 5;
/// Tries of a step whose object is said to be missing, or that keeps failing.
const FAILED_MAX: u32 = 2;

/// The steps of one run, by target.
#[derive(Debug, Default)]
pub(super) struct StepHistory {
    tries: BTreeMap<StepTarget, TargetTries>,
    failures: BTreeMap<StepTarget, StepFailure>,
    blocked: BTreeMap<StepTarget, (Action, StepTarget)>,
}

#[derive(Debug, Default)]
struct TargetTries {
    applied: u32,
    /// Whether a response showed other values than were asked for.
    is_answered_otherwise: bool,
    unsure: u32,
    failed: u32,
}

impl StepHistory {
    /// Records a step that was applied, with the fields whose response differs from the request.
    pub(super) fn record_applied(&mut self, target: &StepTarget, unkept: &[String]) {
        let tries = self.tries.entry(target.clone()).or_default();
        tries.applied += 1;
        tries.is_answered_otherwise |= !unkept.is_empty();
    }

    /// Records a failed try. Returns whether another plan may try again.
    pub(super) fn record_fault(&mut self, step: &PlanStep, fault: &Fault, is_outdated: bool) -> bool {
        let tries = self.tries.entry(step.target.clone()).or_default();
        let may_retry = match fault.class {
            FaultClass::Conflict => {
                tries.unsure += 1;
                tries.unsure < UNSURE_MAX
            }
            FaultClass::NotFound | FaultClass::Transient | FaultClass::RateLimited => {
                tries.failed += 1;
                tries.failed < FAILED_MAX
            }
            // What it refers to may be gone since the plan was made.
            FaultClass::Validation if is_outdated => {
                tries.failed += 1;
                tries.failed < FAILED_MAX
            }
            FaultClass::Validation | FaultClass::Forbidden => false,
        };
        if !may_retry {
            self.fail(step, FailureCause::Fault(fault.class), fault.message.clone());
        }
        may_retry
    }

    /// Records a step whose operation was submitted before. Returns whether another plan may try
    /// again.
    pub(super) fn record_duplicate(&mut self, step: &PlanStep) -> bool {
        let message = "an earlier plan has submitted it already";
        self.record_fault(step, &Fault::new(FaultClass::Conflict, message), false)
    }

    fn fail(&mut self, step: &PlanStep, cause: FailureCause, message: String) {
        let (target, action) = (step.target.clone(), step.action);
        let route = step.call.as_ref().map(|call| {
            let route = &call.route;
            format!("{} {}", route.method().as_str(), route.template())
        });
        let failure = StepFailure { target: target.clone(), action, cause, route, message };
        self.failures.insert(target, failure);
    }

    /// Returns the steps of a plan that are still to be tried, and those that a fresh look at the
    /// guild shows not to stick.
    pub(super) fn select<'p>(&mut self, plan: &'p Plan) -> (Vec<&'p PlanStep>, Vec<&'p PlanStep>) {
        self.blocked.clear();
        let (mut open, mut unkept) = (Vec::new(), Vec::new());
        let orders = plan.writes().filter(|step| step.action == Action::Order);
        for step in plan.scheduled_steps().into_iter().chain(orders) {
            if self.failures.contains_key(&step.target) {
                continue;
            }
            let tries = self.tries.get(&step.target);
            let most = if tries.is_some_and(|tries| tries.is_answered_otherwise) { 1 } else { APPLIED_MAX };
            if tries.is_none_or(|tries| tries.applied < most) {
                open.push(step);
            } else {
                self.fail(step, FailureCause::NotKept, describe_unkept(step));
                unkept.push(step);
            }
        }
        (open, unkept)
    }

    /// Records that a step cannot be tried because of another one.
    pub(super) fn block(&mut self, step: &PlanStep, needs: StepTarget) {
        self.blocked.insert(step.target.clone(), (step.action, needs));
    }

    /// Returns the message of a failed target.
    pub(super) fn failure(&self, target: &StepTarget) -> Option<&StepFailure> {
        self.failures.get(target)
    }

    /// Returns whether anything failed.
    pub(super) fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Returns the targets that failed for good.
    pub(super) fn failed_targets(&self) -> BTreeSet<&StepTarget> {
        self.failures.keys().collect()
    }

    /// Returns all failures, and what was not tried because of them.
    pub(super) fn take_failures(&mut self) -> (Vec<StepFailure>, Vec<BlockedStep>) {
        let failures = std::mem::take(&mut self.failures).into_values().collect();
        let blocked = std::mem::take(&mut self.blocked).into_iter();
        let blocked = blocked.map(|(target, (action, needs))| BlockedStep { target, action, needs });
        (failures, blocked.collect())
    }
}

/// Describes the fields that a server has accepted and not kept.
fn describe_unkept(step: &PlanStep) -> String {
    if step.changes.is_empty() || step.action == Action::Remove {
        return "it was accepted, and the guild shows no effect".to_owned();
    }
    let field = |change: &FieldChange| match &change.from {
        Some(from) => format!("{} is {from} instead of {}", change.field, change.to),
        None => format!("{} is not {}", change.field, change.to),
    };
    let fields: Vec<_> = step.changes.iter().map(field).collect();
    format!("it was accepted and did not stick: {}", fields.join("; "))
}
