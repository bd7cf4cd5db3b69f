//! A server that allows fewer objects than Discord: where a create fails for lack of room, the
//! removals of the plan come first, in its next version.

use tidegate_core::Fault;

use crate::plan::{Action, Plan};

/// Discord's codes for a guild that is full of roles, or of channels.
const FULL: [&str; 2] = ["(code 30005)", "(code 30013)"];

/// Whether removals have to make room, as far as a run knows.
#[derive(Debug, Default)]
pub(super) struct RoomState {
    /// Whether the plan removes anything.
    has_removals: bool,
    /// Whether something was refused because the guild is full.
    is_full: bool,
    /// Whether removals came first already, which is done once.
    was_made: bool,
}

impl RoomState {
    /// Starts a round; returns whether its removals come first.
    pub(super) fn begin_round(&mut self, plan: &Plan) -> bool {
        self.has_removals = plan.writes().any(|step| step.action == Action::Remove);
        let makes_room = self.is_full && self.has_removals;
        self.was_made |= makes_room;
        makes_room
    }

    /// Returns whether a create failed for lack of room that the removals will make.
    pub(super) fn wants(&mut self, fault: &Fault) -> bool {
        let is_full = FULL.iter().any(|code| fault.message.contains(code));
        self.is_full |= is_full;
        is_full && self.has_removals && !self.was_made
    }
}
