//! Why a deployment stopped. What was done stays done, and the next run resumes from there.

use std::time::Duration;

use tidegate_core::{ErrorCode, Fault, FaultClass};

use super::token::refusal_words;
use crate::Id;
use crate::counted::{agreeing, counted};
use crate::guild::GuildDecodeError;
use crate::plan::{Action, Conflict, MissingObject, StepTarget};

/// An error that ends a deployment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another deployment of the guild is running.
    #[error("Another deployment of guild {guild} is under way{}. Try again when it has ended.", named(.deployment.as_deref()))]
    Busy {
        /// The guild.
        guild: Id,
        /// The deployment, if it is in the journal.
        deployment: Option<String>,
    },
    /// An operator has to resolve conflicts first. Nothing was changed after they were found.
    #[error("The guild and the template do not fit together:{}", listed(.0))]
    Conflicts(Vec<Conflict>),
    /// The guild, or the journal, has changed since the plan was made that was agreed to.
    #[error("The guild has changed since the plan was made. Nothing was applied.")]
    Changed,
    /// Some steps failed for good; every step that does not depend on them was applied.
    #[error("{}", described(.failures, .blocked, *.applied))]
    Incomplete {
        /// The failed steps.
        failures: Vec<StepFailure>,
        /// The steps that were not tried because of them.
        blocked: Vec<BlockedStep>,
        /// Calls that changed something.
        applied: usize,
    },
    /// Discord does not know the bot's token: every call would fail.
    #[error("Discord refused the bot's token: {}. Nothing is sent with it for {} min.", refusal_words(.fault), .left.as_secs().div_ceil(60))]
    TokenRefused {
        /// The failure that was reported.
        fault: Fault,
        /// How much longer nothing is sent with this token.
        left: Duration,
    },
    /// The guild could not be listed.
    #[error("The guild could not be read: {} ({})", .0.message, .0.class.as_str())]
    ReadFailed(Fault),
    /// An operator canceled the operation.
    #[error("The {0} was canceled by an operator.")]
    Canceled(String),
    /// The guild changes as fast as plans are made.
    #[error("Planned {rounds} times without progress; the last reason: {last}")]
    GaveUp {
        /// How many plans were made.
        rounds: u32,
        /// Why the last plan did not hold.
        last: String,
    },
    /// Another owner holds the guild now: the lease was not renewed in time.
    #[error("The lease on the guild was lost; accepted operations continue, and the next run picks them up.")]
    LeaseLost,
    /// The guild could not be listed in time.
    #[error("The guild was not listed within {} s.", .0.as_secs())]
    NotListed(Duration),
    /// A response that is not in Discord's format.
    #[error(transparent)]
    Undecodable(#[from] GuildDecodeError),
    /// A response without a required field.
    #[error("Discord's response to the {0} has no id.")]
    NoId(StepTarget),
    /// A plan whose steps are in a wrong order.
    #[error(transparent)]
    Missing(#[from] MissingObject),
    /// The request is not acceptable.
    #[error("{0}")]
    Invalid(String),
    /// An error of the queue.
    #[error(transparent)]
    Engine(#[from] tidegate::Error),
    /// An error of the journal.
    #[error("The journal cannot be read or written: {0}")]
    Store(#[from] tidegate_store::Error),
    /// An error of the lease.
    #[error("The guild cannot be locked: {0}")]
    Lease(#[from] tidegate_limits::Error),
}

impl Error {
    /// Returns the code of the error.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Busy { .. } | Self::Changed | Self::Conflicts(_) => ErrorCode::NotNow,
            Self::Invalid(_) => ErrorCode::Invalid,
            Self::NotListed(_) => ErrorCode::NotInTime,
            Self::Engine(error) => error.kind.code(),
            Self::LeaseLost | Self::Store(_) | Self::Lease(_) => ErrorCode::StoreUnavailable,
            // Discord's error, or no response.
            _ => ErrorCode::NoAnswer,
        }
    }

    /// Returns whether the same run may simply be repeated: the request is fine, something was in
    /// the way.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::LeaseLost | Self::Store(_) | Self::Lease(_) => true,
            // What the queue refuses because of the request itself, it will refuse again.
            Self::Engine(error) => error.kind.is_transient(),
            _ => false,
        }
    }
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureCause {
    /// The call failed.
    Fault(FaultClass),
    /// The server accepted it, and a fresh look at the guild shows that it did not stick.
    NotKept,
}

impl FailureCause {
    /// Returns the cause in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fault(class) => class.as_str(),
            Self::NotKept => "not_kept",
        }
    }
}

/// A step that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepFailure {
    /// The step.
    pub target: StepTarget,
    /// What it was to do.
    pub action: Action,
    /// Why it failed.
    pub cause: FailureCause,
    /// The method and route of its call.
    pub route: Option<String>,
    /// What was reported.
    pub message: String,
}

/// A step that was not tried because of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedStep {
    /// The step.
    pub target: StepTarget,
    /// What it was to do.
    pub action: Action,
    /// The step that it needs; for a removal, one that has failed.
    pub needs: StepTarget,
}

impl StepFailure {
    /// Returns the HTTP status of the response, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let (_, answer) = self.message.split_once(" was answered ")?;
        answer.get(..3)?.parse().ok()
    }
}

impl BlockedStep {
    /// Returns why it was not tried.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.action {
            Action::Remove => "nothing is removed while a step has failed".to_owned(),
            _ => format!("it needs the {}", self.needs),
        }
    }
}

/// Failures named in a message.
const NAMED_MAX: usize = 20;

fn described(failures: &[StepFailure], blocked: &[BlockedStep], applied: usize) -> String {
    let not_tried = match blocked.len() {
        0 => String::new(),
        count => format!(", {count} not tried"),
    };
    let (failed, writes) = (counted(failures.len(), "step"), counted(applied, "write"));
    let were = agreeing(applied, "was", "were");
    let mut text = format!("{failed} failed{not_tried}, {writes} {were} accepted.");
    for StepFailure { target, action, cause, message, .. } in failures.iter().take(NAMED_MAX) {
        let (what, message) = (target.with_action(*action), message.trim_end_matches('.'));
        text.push_str(&format!("\n{what}: {message} ({})", cause.as_str()));
    }
    for step in blocked.iter().take(NAMED_MAX.saturating_sub(failures.len())) {
        let what = match step.action {
            Action::Remove => step.target.with_action(Action::Remove),
            _ => step.target.to_string(),
        };
        text.push_str(&format!("\n{what}: not tried, because {}", step.reason()));
    }
    let unnamed = (failures.len() + blocked.len()).saturating_sub(NAMED_MAX);
    if unnamed > 0 {
        text.push_str(&format!("\nand {unnamed} more, which are in the journal"));
    }
    text
}

/// The result type of the deployer.
pub type Result<T> = std::result::Result<T, Error>;

fn named(deployment: Option<&str>) -> String {
    deployment.map_or_else(String::new, |id| format!(" ({id})"))
}

fn listed(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| format!("\n! {conflict}")).collect()
}
