//! Maps failures of the server to the error kinds of the storage ports.

use redis::{ErrorKind, RedisError, Value};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::connection::CommandFailure;

/// Whether the server can have seen a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It has not, or it rejected the command: nothing has changed.
    NoEffect,
    /// It may have.
    Unknown,
}

impl Delivery {
    /// Classifies a failure. An error of the server changes nothing; a refused connection carried
    /// nothing.
    pub(crate) fn of(cause: &RedisError) -> Self {
        let refused = matches!(
            cause.kind(),
            ErrorKind::Server(_)
                | ErrorKind::Extension
                | ErrorKind::AuthenticationFailed
                | ErrorKind::InvalidClientConfig
                | ErrorKind::ClusterConnectionNotFound
        );
        if refused || cause.is_connection_refusal() { Self::NoEffect } else { Self::Unknown }
    }
}

/// The failure of a command that only reads, or that is idempotent.
pub(crate) fn unusable(name: &str, failed: CommandFailure) -> Error {
    Error::new(StoreErrorKind::Unavailable, format!("{name} did not respond properly"))
        .with_source(failed.cause)
}

/// The failure of a command that changes data.
pub(crate) fn undecided(name: &str, doing: &str, failed: CommandFailure) -> Error {
    match failed.delivery {
        Delivery::NoEffect => {
            Error::new(StoreErrorKind::Unavailable, format!("{name} did not {doing}; nothing has changed"))
                .with_source(failed.cause)
        }
        Delivery::Unknown => {
            let message = format!("the connection to {name} was lost; it is unknown whether it did {doing}");
            Error::new(StoreErrorKind::Unsure, message).with_source(failed.cause)
        }
    }
}

/// Checks that none of the replies of a pipeline is an error.
pub(crate) fn check_answers(name: &str, answers: Vec<Value>) -> Result<Vec<Value>> {
    let answers = answers.into_iter().map(Value::extract_error).collect::<redis::RedisResult<Vec<_>>>();
    answers.map_err(|cause| unusable(name, CommandFailure { delivery: Delivery::NoEffect, cause }))
}

/// The data is not what this program writes.
pub(crate) fn unreadable(message: impl Into<String>) -> Error {
    Error::new(StoreErrorKind::Unreadable, message)
}
