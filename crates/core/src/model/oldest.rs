//! The age of the queue: since when the operation waits that has waited longest.

use super::Model;
use super::view::state_of;
use crate::state::State;
use crate::time::Time;

/// The most operations that one search looks at, so that it never takes long. Only what is in
/// flight, of unknown outcome or delayed is passed over, so few are looked at in practice.
const LOOKED_AT_MAX: usize = 20_000;

impl Model {
    /// Returns since when the operation waits that has waited longest: since its acceptance, or
    /// since the end of its own delay. Operations in flight or of unknown outcome do not wait;
    /// those of a paused or held group do. `None` when nothing waits, or when nothing that waits is
    /// among the oldest 20,000 operations.
    #[must_use]
    pub fn oldest_waiting(&self, now: Time) -> Option<Time> {
        let now = self.now(now);
        let mut oldest: Option<Time> = None;
        for ix in self.by_seq.oldest_first().take(LOOKED_AT_MAX) {
            let entry = &self.entries[ix.at()];
            // Later ones were accepted later, and so wait for a shorter time.
            if oldest.is_some_and(|oldest| oldest <= entry.at) {
                break;
            }
            let waits =
                !matches!(state_of(&self.groups[entry.group.at()], entry), State::Running | State::Unknown);
            let since = entry.at.max(entry.not_before);
            if waits && since <= now {
                oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
            }
        }
        oldest
    }
}
