//! Work that waits for the disk, kept off the threads that answer requests.

use tidegate_store::{Error, Result, StoreErrorKind};

/// Does it on a thread of its own.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(join_error(cause)))
}

/// The thread did not get to its end.
pub(super) fn join_error(cause: tokio::task::JoinError) -> Error {
    Error::new(StoreErrorKind::Unavailable, "reading from the store was cut off").with_source(cause)
}
