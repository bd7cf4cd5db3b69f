//! Why a deployment did not come to its end. What was done stays done, and the next run goes on from there.

use tidegate::ErrorCode;
use tidegate_core::Fault;

use crate::Id;
use crate::guild::GuildDecodeError;
use crate::plan::{Conflict, MissingObject, StepTarget};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another deployment of the guild is under way.
    #[error("Another deployment of guild {guild} is under way{}. Try again when it has ended.", named(.deployment.as_deref()))]
    Busy {
        /// The guild.
        guild: Id,
        /// The deployment, if it is in the journal.
        deployment: Option<String>,
    },
    /// People have to settle something first. Nothing was changed since it was seen.
    #[error("The guild and the template do not fit together: {}", listed(.0))]
    Conflicts(Vec<Conflict>),
    /// A step was refused for good.
    #[error("The {target} was not applied: {} ({})", .fault.message, .fault.class.as_str())]
    Step {
        /// Which one.
        target: StepTarget,
        /// What was said.
        fault: Fault,
    },
    /// The guild could not be listed.
    #[error("The guild could not be read: {} ({})", .0.message, .0.class.as_str())]
    ReadFailed(Fault),
    /// A person called the operation off.
    #[error("The {0} was called off by hand.")]
    Canceled(String),
    /// The guild changes as fast as plans are made.
    #[error("Planned {rounds} times without getting on; the last reason: {last}")]
    GaveUp {
        /// How often.
        rounds: u32,
        /// Why the last plan did not hold.
        last: String,
    },
    /// Somebody else has the guild now: the lease was not renewed in time.
    #[error("The lease on the guild was lost; what was accepted goes on, and the next run takes it in.")]
    LeaseLost,
    /// An answer that is not Discord's.
    #[error(transparent)]
    Undecodable(#[from] GuildDecodeError),
    /// An answer without what it must have.
    #[error("Discord's answer to the {0} has no id.")]
    NoId(StepTarget),
    /// A plan whose steps are in a wrong order.
    #[error(transparent)]
    Missing(#[from] MissingObject),
    /// What is wanted cannot be taken.
    #[error("{0}")]
    Invalid(String),
    /// The queue's.
    #[error(transparent)]
    Engine(#[from] tidegate::Error),
    /// The journal's.
    #[error("The journal cannot be kept: {0}")]
    Store(#[from] tidegate_store::Error),
    /// The lease's.
    #[error("The guild cannot be held: {0}")]
    Lease(#[from] tidegate_limits::Error),
}

impl Error {
    /// Whether the same run may simply be made again: nothing of it is wrong, something was in the way.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::LeaseLost | Self::Store(_) | Self::Lease(_) => true,
            // What the queue refuses for the request's own sake, it refuses again.
            Self::Engine(error) => matches!(
                error.code,
                ErrorCode::StoreUnavailable
                    | ErrorCode::Stopping
                    | ErrorCode::StoreRefused
                    | ErrorCode::Internal
            ),
            _ => false,
        }
    }
}

/// What deploying gives.
pub type Result<T> = std::result::Result<T, Error>;

fn named(deployment: Option<&str>) -> String {
    deployment.map_or_else(String::new, |id| format!(" ({id})"))
}

fn listed(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(Conflict::to_string).collect::<Vec<_>>().join(" ")
}
