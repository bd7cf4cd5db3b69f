//! Errors: an invalid call, a cost that can never be granted, or a store that failed. Having to
//! wait is not an error.

use tidegate_store::StoreErrorKind;

/// An error of a bucket or a lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call is invalid; the message says why. Nothing was done.
    #[error("{0}")]
    Invalid(String),
    /// The cost exceeds the capacity of the bucket, so it could never be granted. Nothing was
    /// taken.
    #[error("It costs {cost} of the bucket {bucket:?}, which never holds more than {capacity}.")]
    TooCostly {
        /// The bucket.
        bucket: String,
        /// The requested cost, in tokens.
        cost: f64,
        /// The capacity, in tokens.
        capacity: f64,
    },
    /// The store failed. Nothing was granted; see [`Error::is_unsure`].
    #[error("The store failed: {0}.")]
    Store(#[from] tidegate_store::Error),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns whether the operation may have been done all the same: tokens may be taken, a lease
    /// may be held until it expires. Otherwise nothing was done, and it may be retried.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        matches!(self, Self::Store(error) if error.kind() == StoreErrorKind::Unsure)
    }

    /// Copies a store error for another waiter for the same result.
    pub(crate) fn duplicate(error: &tidegate_store::Error) -> Self {
        Self::Store(tidegate_store::Error::new(error.kind(), error.to_string()))
    }
}
