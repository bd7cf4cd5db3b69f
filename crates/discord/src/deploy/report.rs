//! What a deployment came to, counted.

use serde::Serialize;

use crate::plan::Action;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeployReport {
    /// The id of the deployment.
    pub deployment: String,
    /// Whether it went on with an interrupted one.
    pub resumed: bool,
    /// Plans that were made.
    pub rounds: u32,
    /// Objects that were made.
    pub created: usize,
    /// Objects that were changed.
    pub updated: usize,
    /// Objects that were put in their places.
    pub moved: usize,
    /// Objects that were removed.
    pub removed: usize,
    /// Objects that were as they should be from the start, or were found again by their names.
    pub skipped: usize,
    /// Managed objects that are not in the template and were left alone.
    pub leftovers: usize,
    /// Objects that were found by their names and not by the journal.
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

    /// Calls that changed something.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.created + self.updated + self.moved + self.removed
    }
}
