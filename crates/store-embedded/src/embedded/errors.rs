//! Maps SQLite errors to the store's error kinds, with readable messages. They never contain a row
//! or a value.

use std::path::Path;

use rusqlite::ErrorCode;
use tidegate_store::{Error, StoreErrorKind};

/// A failure after which nothing has changed.
pub(super) fn nothing_changed(path: &Path, cause: &rusqlite::Error) -> Error {
    if let rusqlite::Error::FromSqlConversionFailure(_, _, what) = cause {
        return damaged(path, &what.to_string());
    }
    let (kind, what) = match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (StoreErrorKind::Unavailable, "has no room left: nothing was written"),
        Some(ErrorCode::ConstraintViolation) => {
            (StoreErrorKind::Invalid, "already holds something else under that name")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (StoreErrorKind::Unreadable, "is damaged")
        }
        Some(_) => (StoreErrorKind::Unavailable, "could not be used: nothing was written"),
        None => (StoreErrorKind::Unreadable, "holds something this program did not write"),
    };
    Error::new(kind, format!("{} {what}", path.display())).with_source(cause.to_string())
}

/// The stored data is not what was written.
pub(super) fn damaged(path: &Path, what: &str) -> Error {
    Error::new(StoreErrorKind::Unreadable, format!("{} is damaged: {what}", path.display()))
}

/// There is no room for an append, and nothing of it was written.
pub(super) fn no_room(path: &Path, cause: &str) -> Error {
    let message = format!("{} has no room left: nothing was written", path.display());
    Error::new(StoreErrorKind::Unavailable, message).with_source(cause.to_owned())
}

/// A commit of which it is unknown whether it will survive a crash.
pub(super) fn unsure(path: &Path, cause: &str) -> Error {
    let message = format!(
        "it is unknown whether the last commit to {} is durable; nothing more is written until it is reopened",
        path.display()
    );
    Error::new(StoreErrorKind::Unsure, message).with_source(cause.to_owned())
}

/// Returns whether a commit that failed like this certainly did not happen: the disk was full, or
/// the database was busy.
pub(super) fn is_surely_undone(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy))
}
