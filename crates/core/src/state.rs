//! The states of an operation as users see them, and the table of legal transitions. The model
//! asserts the table on every change; the documentation and the tests read the same table.

use std::fmt;

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Accepted; its turn has not come.
    Queued,
    /// At the head of its group, waiting for a time, a limit or a slot.
    Waiting,
    /// A worker is executing it, or its job was accepted and it awaits the completion.
    Running,
    /// The request was sent and no response came; an operator must resolve the outcome.
    Unknown,
    /// The call succeeded.
    Succeeded,
    /// The call failed for good.
    Failed,
    /// It was canceled.
    Canceled,
}

impl State {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Waiting,
        Self::Running,
        Self::Unknown,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
    ];

    /// Whether it has ended.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Unknown => "unknown",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Parses a stable name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether an operation may go from this state to `next` in one step.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }
}

/// Every legal step. `Queued` and `Waiting` turn into each other as heads come and go.
pub const TRANSITIONS: [(State, &[State]); 7] = [
    (State::Queued, &[State::Waiting, State::Running, State::Failed, State::Canceled]),
    (State::Waiting, &[State::Queued, State::Running, State::Failed, State::Canceled]),
    (
        State::Running,
        &[State::Waiting, State::Queued, State::Unknown, State::Succeeded, State::Failed, State::Canceled],
    ),
    (State::Unknown, &[State::Queued, State::Waiting, State::Succeeded, State::Failed, State::Canceled]),
    (State::Succeeded, &[]),
    (State::Failed, &[State::Queued, State::Waiting]),
    (State::Canceled, &[State::Queued, State::Waiting]),
];

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndState {
    /// The call succeeded.
    Succeeded,
    /// The call failed for good.
    Failed,
    /// It was canceled.
    Canceled,
}

impl From<EndState> for State {
    fn from(end: EndState) -> Self {
        match end {
            EndState::Succeeded => Self::Succeeded,
            EndState::Failed => Self::Failed,
            EndState::Canceled => Self::Canceled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_succeeded_stays_and_only_a_claim_makes_it_run() {
        for next in State::ALL {
            assert!(!State::Succeeded.may_become(next));
        }
        for from in State::ALL {
            assert_eq!(from.may_become(State::Running), matches!(from, State::Queued | State::Waiting));
            assert_eq!(from.may_become(State::Unknown), from == State::Running);
            assert_eq!(State::parse(from.as_str()), Some(from));
        }
    }
}
