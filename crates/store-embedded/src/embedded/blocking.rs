//! Work that waits for the disk, kept off the threads that answer requests.

use tidegate_store::{Error, Kind, Result};

/// Does it on a thread of its own.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(cut_off(cause)))
}

/// The thread did not get to its end.
pub(super) fn cut_off(cause: tokio::task::JoinError) -> Error {
    Error::new(Kind::Unavailable, "reading from the store was cut off").because(cause)
}
