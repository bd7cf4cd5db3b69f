//! What can go wrong here: a call that makes no sense, a cost that can never be had, a store that did not answer. Being
//! told to wait is no error.

use tidegate_store::StoreErrorKind;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call makes no sense; the sentence says why. Nothing was done.
    #[error("{0}")]
    Invalid(String),
    /// The bucket never holds as much as that, so it could never be granted. Nothing was taken.
    #[error("It costs {cost} of the bucket {bucket:?}, which never holds more than {capacity}.")]
    TooCostly {
        /// Which bucket.
        bucket: String,
        /// What was asked, in tokens.
        cost: f64,
        /// The most it holds, in tokens.
        capacity: f64,
    },
    /// The store failed. Nothing was granted; see [`Error::is_unsure`].
    #[error("The store did not do it: {0}.")]
    Store(#[from] tidegate_store::Error),
}

/// An answer, or what went wrong.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether it may have been done all the same: tokens may be taken, a lease may be held until it runs out. Otherwise
    /// nothing was done, and it may be tried again.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        matches!(self, Self::Store(error) if error.kind() == StoreErrorKind::Unsure)
    }

    /// The same once more, for another one who waits for the same answer.
    pub(crate) fn duplicate(error: &tidegate_store::Error) -> Self {
        Self::Store(tidegate_store::Error::new(error.kind(), error.to_string()))
    }
}
