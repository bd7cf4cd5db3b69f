//! The counted results of a deployment.

use serde::Serialize;

use crate::plan::Action;

/// What a deployment did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeployReport {
    /// The id of the deployment.
    pub deployment: String,
    /// Whether it resumed an interrupted deployment.
    pub resumed: bool,
    /// Plans that were made.
    pub rounds: u32,
    /// Objects that were created.
    pub created: usize,
    /// Objects that were changed.
    pub updated: usize,
    /// Objects that were moved to their positions.
    pub moved: usize,
    /// Objects that were found as wanted after the response to their call was lost.
    pub found: usize,
    /// Objects that were removed.
    pub removed: usize,
    /// Objects that needed no change from the start, or were found again by their names.
    pub skipped: usize,
    /// Managed objects that are not in the template and were left alone.
    pub leftovers: usize,
    /// Objects that were found by their names instead of the journal.
    pub adopted: usize,
}

impl DeployReport {
    pub(super) fn count(&mut self, action: Action) {
        match action {
            Action::Create => self.created += 1,
            Action::Update => self.updated += 1,
            Action::Order => self.moved += 1,
            Action::Remove => self.removed += 1,
            Action::Skip => self.skipped += 1,
        }
    }

    /// Returns the number of calls that changed something.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.created + self.updated + self.moved + self.removed
    }
}
