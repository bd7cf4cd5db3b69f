//! Progress events of a running deployment, for display.

use std::time::Duration;

use crate::plan::{Plan, PlanStep};

/// Something that happened in a deployment.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// The guild is free and the journal is open.
    Begun {
        /// The id of the deployment.
        deployment: &'a str,
        /// Whether it resumes an interrupted deployment.
        resumed: bool,
    },
    /// The guild is being listed.
    Reading,
    /// A plan was made.
    Planned {
        /// The plan.
        plan: &'a Plan,
        /// Calls that the plan makes.
        calls: usize,
        /// The number of this plan within the run.
        round: u32,
    },
    /// A step was submitted.
    Started(&'a PlanStep),
    /// The step waits.
    Waiting {
        /// The reason, as a sentence.
        because: &'a str,
        /// How much longer, as far as known.
        left: Option<Duration>,
    },
    /// How long the rest of the plan takes, at the limits known so far.
    Expecting {
        /// The time.
        left: Duration,
    },
    /// The step would wait for long, and goes after all others.
    Postponed(&'a PlanStep),
    /// The step was applied.
    Applied {
        /// The step.
        step: &'a PlanStep,
        /// How long it took, waiting included.
        took: Duration,
    },
    /// The step failed for good; others continue.
    Failed {
        /// The step.
        step: &'a PlanStep,
        /// Why.
        because: &'a str,
    },
    /// The plan no longer held.
    Replanning {
        /// Why.
        because: &'a str,
    },
}

/// Receives progress events. It must not block.
pub trait ProgressListener: Send + Sync {
    /// Handles an event.
    fn on_event(&self, told: &ProgressEvent<'_>);
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopListener;

impl ProgressListener for NoopListener {
    fn on_event(&self, _: &ProgressEvent<'_>) {}
}
