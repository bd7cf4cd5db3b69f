//! What a deployment tells while it runs, for whoever shows it.

use std::time::Duration;

use crate::plan::{Plan, Step};

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Told<'a> {
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
    Started(&'a Step),
    /// It waits.
    Waiting {
        /// For what, as a sentence.
        because: &'a str,
    },
    /// It was applied.
    Applied {
        /// The step.
        step: &'a Step,
        /// How long it took, waiting included.
        took: Duration,
    },
    /// The plan did not hold.
    Again {
        /// Why.
        because: &'a str,
    },
}

/// Who is told. It must not block.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn tell(&self, told: &Told<'_>);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Listener for Quiet {
    fn tell(&self, _: &Told<'_>) {}
}
