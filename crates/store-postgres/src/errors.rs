//! Maps errors of the driver and the server to the store's error kinds, with readable messages.
//! They never contain a value, a row or a password: only the server's own message and its code.

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use tidegate_store::{Error, StoreErrorKind};

/// The outcome of a failed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementOutcome {
    /// The server rejected it and rolled everything back.
    Undone,
    /// The connection broke: it may have been executed.
    Unknown,
}

/// The outcome of a statement that failed like this. A server that ends the connection may have
/// committed before.
pub(crate) fn statement_outcome(cause: &sqlx::Error) -> StatementOutcome {
    match cause {
        sqlx::Error::Database(said) => {
            match said.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity) {
                Some(PgSeverity::Error) => StatementOutcome::Undone,
                _ => StatementOutcome::Unknown,
            }
        }
        sqlx::Error::Encode(_)
        | sqlx::Error::RowNotFound
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Configuration(_)
        | sqlx::Error::Tls(_) => StatementOutcome::Undone,
        _ => StatementOutcome::Unknown,
    }
}

/// There was no connection, so nothing was sent.
pub(crate) fn unreachable(place: &str, cause: &sqlx::Error) -> Error {
    let message = format!("{place} is unreachable: nothing was sent");
    Error::new(StoreErrorKind::Unavailable, message).with_source(server_message(cause))
}

/// A failure after which nothing has changed.
pub(crate) fn nothing_changed(place: &str, cause: &sqlx::Error) -> Error {
    let (kind, what) = match code_of(cause).as_deref() {
        Some("3F000" | "42P01" | "42883") => (
            StoreErrorKind::Unreadable,
            "has no tables of this program, or not those of this version: migrate it",
        ),
        Some("22021" | "22P05") => {
            (StoreErrorKind::Invalid, "cannot store a name or text with that character")
        }
        Some("54000") => (StoreErrorKind::Invalid, "cannot store so much at once"),
        Some("42501" | "28000" | "28P01") => {
            (StoreErrorKind::Unavailable, "denied access: nothing was written")
        }
        Some("25006") => (StoreErrorKind::Unavailable, "accepts no writes: nothing was written"),
        Some("53100" | "53200") => (StoreErrorKind::Unavailable, "has no room left: nothing was written"),
        Some("57014" | "55P03") => (StoreErrorKind::Unavailable, "timed out: nothing was written"),
        Some(code) if code.starts_with("XX") => (StoreErrorKind::Unreadable, "found its own data damaged"),
        _ => match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                (StoreErrorKind::Unreadable, "holds something this program did not write")
            }
            sqlx::Error::Encode(_) => (StoreErrorKind::Invalid, "cannot encode a value that was sent"),
            _ => (StoreErrorKind::Unavailable, "could not be used: nothing was written"),
        },
    };
    Error::new(kind, format!("{place} {what}")).with_source(server_message(cause))
}

/// A statement of which it is unknown whether it was executed.
pub(crate) fn unsure(place: &str, cause: &str) -> Error {
    let message = format!("the connection to {place} broke before the response came: the outcome is unknown");
    Error::new(StoreErrorKind::Unsure, message).with_source(cause.to_owned())
}

/// The data is something that this program cannot have written.
pub(crate) fn unreadable(place: &str, what: &str) -> Error {
    Error::new(StoreErrorKind::Unreadable, format!("{place} {what}"))
}

/// The server's error code.
pub(crate) fn code_of(cause: &sqlx::Error) -> Option<String> {
    cause.as_database_error().and_then(DatabaseError::code).map(std::borrow::Cow::into_owned)
}

/// The message of a failure, without details: those repeat values.
pub(crate) fn server_message(cause: &sqlx::Error) -> String {
    match cause {
        sqlx::Error::Database(said) => {
            format!("{} ({})", said.message(), said.code().unwrap_or_default())
        }
        sqlx::Error::Io(cause) => cause.to_string(),
        sqlx::Error::PoolTimedOut => "no connection was available in time".into(),
        sqlx::Error::PoolClosed => "the store is closed".into(),
        sqlx::Error::Tls(cause) => format!("TLS: {cause}"),
        sqlx::Error::Protocol(_) => "the server's response was not understood".into(),
        _ => "the driver failed".into(),
    }
}
