//! What a failure of the server means for the caller, in the words of the ports.

use redis::{ErrorKind, RedisError, Value};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::connection::CommandFailure;

/// Whether the server can have seen what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It has not, or it refused: nothing has changed.
    NoEffect,
    /// It may have.
    Unknown,
}

impl Delivery {
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
        if refused || cause.is_connection_refusal() { Self::NoEffect } else { Self::Unknown }
    }
}

/// A failure of something that only looks, or that may be done twice.
pub(crate) fn unusable(name: &str, failed: CommandFailure) -> Error {
    Error::new(StoreErrorKind::Unavailable, format!("{name} does not answer as it should"))
        .with_source(failed.cause)
}

/// A failure of something that changes what is kept.
pub(crate) fn undecided(name: &str, doing: &str, failed: CommandFailure) -> Error {
    match failed.delivery {
        Delivery::NoEffect => {
            Error::new(StoreErrorKind::Unavailable, format!("{name} did not {doing}; nothing has changed"))
                .with_source(failed.cause)
        }
        Delivery::Unknown => {
            let message =
                format!("the connection to {name} was lost, and nobody knows whether it did {doing}");
            Error::new(StoreErrorKind::Unsure, message).with_source(failed.cause)
        }
    }
}

/// The answers of a pipeline, of which none may be a refusal.
pub(crate) fn check_answers(name: &str, answers: Vec<Value>) -> Result<Vec<Value>> {
    let answers = answers.into_iter().map(Value::extract_error).collect::<redis::RedisResult<Vec<_>>>();
    answers.map_err(|cause| unusable(name, CommandFailure { delivery: Delivery::NoEffect, cause }))
}

/// What lies there is not what this program writes.
pub(crate) fn unreadable(message: impl Into<String>) -> Error {
    Error::new(StoreErrorKind::Unreadable, message)
}
