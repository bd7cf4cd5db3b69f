//! The states of an operation as users see them, and the table of legal transitions. What an
//! operator may do follows from the table, and random tests compare every change with it.

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
        self.end_state().is_some()
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

    /// How the operation ended; `None` when it has not.
    #[must_use]
    pub const fn end_state(self) -> Option<EndState> {
        match self {
            Self::Succeeded => Some(EndState::Succeeded),
            Self::Failed => Some(EndState::Failed),
            Self::Canceled => Some(EndState::Canceled),
            Self::Queued | Self::Waiting | Self::Running | Self::Unknown => None,
        }
    }

    /// Whether an operation in this state may be canceled.
    #[must_use]
    pub fn can_cancel(self) -> bool {
        self.may_become(Self::Canceled)
    }

    /// Whether an operation in this state may be run again: it has ended, and what succeeded stays.
    #[must_use]
    pub fn can_rerun(self) -> bool {
        self.is_ended() && self.may_become(Self::Queued)
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

impl EndState {
    /// Parses the stable name of the state.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        State::parse(word).and_then(State::end_state)
    }
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

    #[test]
    fn an_end_reads_back_from_its_state() {
        for state in State::ALL {
            assert_eq!(state.end_state().map(State::from), Some(state).filter(|state| state.is_ended()));
            assert_eq!(EndState::parse(state.as_str()), state.end_state());
        }
        assert_eq!(EndState::parse("Failed"), None);
    }

    /// OPS-9: only what has not ended can be canceled, and only what failed or was canceled can be
    /// run again.
    #[test]
    fn ops_9_what_an_operator_may_do() {
        for state in State::ALL {
            assert_eq!(state.can_cancel(), !state.is_ended(), "{state}");
            assert_eq!(state.can_rerun(), matches!(state, State::Failed | State::Canceled), "{state}");
        }
    }
}
