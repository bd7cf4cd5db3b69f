//! What SQLite says, in the store's few kinds and in words for people. No row and no value ever gets into them.

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

/// What is stored is not what was written.
pub(super) fn damaged(path: &Path, what: &str) -> Error {
    Error::new(StoreErrorKind::Unreadable, format!("{} is damaged: {what}", path.display()))
}

/// There is no room for an append, and nothing of it is there.
pub(super) fn no_room(path: &Path, cause: &str) -> Error {
    let message = format!("{} has no room left: nothing was written", path.display());
    Error::new(StoreErrorKind::Unavailable, message).with_source(cause.to_owned())
}

/// A commit of which nobody knows whether it will be there after a crash.
pub(super) fn unsure(path: &Path, cause: &str) -> Error {
    let message = format!(
        "it is not known whether the last commit to {} is safe; nothing more is written until it is reopened",
        path.display()
    );
    Error::new(StoreErrorKind::Unsure, message).with_source(cause.to_owned())
}

/// Whether a commit that failed like this surely did not happen: there was no room for it, or no turn.
pub(super) fn is_surely_undone(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy))
}
