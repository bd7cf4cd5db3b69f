//! Runs blocking disk work away from the threads that serve requests.

use tidegate_store::{Error, Result, StoreErrorKind};

/// Runs blocking work on a thread of its own.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(join_error(cause)))
}

/// The error for a thread that did not finish.
pub(super) fn join_error(cause: tokio::task::JoinError) -> Error {
    Error::new(StoreErrorKind::Unavailable, "reading from the store was interrupted").with_source(cause)
}
