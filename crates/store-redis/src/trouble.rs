//! What a failure of the server means for the caller, in the words of the ports.

use redis::{ErrorKind, RedisError, Value};
use tidegate_store::{Error, Kind, Result};

use crate::link::Failed;

/// Whether the server can have seen what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It has not, or it refused: nothing has changed.
    None,
    /// It may have.
    Perhaps,
}

impl Reach {
    /// A refusal of the server changes nothing; a connection that was refused carried nothing.
    pub(crate) fn of(cause: &RedisError) -> Self {
        let refused = matches!(
            cause.kind(),
            ErrorKind::Server(_)
                | ErrorKind::Extension
                | ErrorKind::AuthenticationFailed
                | ErrorKind::InvalidClientConfig
                | ErrorKind::ClusterConnectionNotFound
        );
        if refused || cause.is_connection_refusal() { Self::None } else { Self::Perhaps }
    }
}

/// A failure of something that only looks, or that may be done twice.
pub(crate) fn unusable(name: &str, failed: Failed) -> Error {
    Error::new(Kind::Unavailable, format!("{name} does not answer as it should")).because(failed.cause)
}

/// A failure of something that changes what is kept.
pub(crate) fn undecided(name: &str, doing: &str, failed: Failed) -> Error {
    match failed.reach {
        Reach::None => Error::new(Kind::Unavailable, format!("{name} did not {doing}; nothing has changed"))
            .because(failed.cause),
        Reach::Perhaps => {
            let message =
                format!("the connection to {name} was lost, and nobody knows whether it did {doing}");
            Error::new(Kind::Unsure, message).because(failed.cause)
        }
    }
}

/// The answers of a pipeline, of which none may be a refusal.
pub(crate) fn all_answered(name: &str, answers: Vec<Value>) -> Result<Vec<Value>> {
    let answers = answers.into_iter().map(Value::extract_error).collect::<redis::RedisResult<Vec<_>>>();
    answers.map_err(|cause| unusable(name, Failed { reach: Reach::None, cause }))
}

/// What lies there is not what this program writes.
pub(crate) fn unreadable(message: impl Into<String>) -> Error {
    Error::new(Kind::Unreadable, message)
}
