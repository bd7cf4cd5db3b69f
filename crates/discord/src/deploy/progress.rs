//! What a deployment tells while it runs, for whoever shows it.

use std::time::Duration;

use crate::plan::{Plan, PlanStep};

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// The guild is free and the journal is open.
    Begun {
        /// The id of the deployment.
        deployment: &'a str,
        /// Whether it goes on with one that was interrupted.
        resumed: bool,
    },
    /// The guild is being listed.
    Reading,
    /// There is a plan.
    Planned {
        /// The plan.
        plan: &'a Plan,
        /// Calls that it takes.
        calls: usize,
        /// How many plans there were with this one.
        round: u32,
    },
    /// A step is on its way.
    Started(&'a PlanStep),
    /// It waits.
    Waiting {
        /// For what, as a sentence.
        because: &'a str,
    },
    /// It was applied.
    Applied {
        /// The step.
        step: &'a PlanStep,
        /// How long it took, waiting included.
        took: Duration,
    },
    /// The plan did not hold.
    Replanning {
        /// Why.
        because: &'a str,
    },
}

/// Who is told. It must not block.
pub trait ProgressListener: Send + Sync {
    /// Something happened.
    fn on_event(&self, told: &ProgressEvent<'_>);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopListener;

impl ProgressListener for NoopListener {
    fn on_event(&self, _: &ProgressEvent<'_>) {}
}
