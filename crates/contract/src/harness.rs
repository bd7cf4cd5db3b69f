//! What a backend must provide to be tested, and assertions for suites. A suite knows the ports and
//! nothing else.

use std::sync::Arc;

use tidegate_store::{Result, Store, StoreFuture};

use crate::clock::ManualClock;

/// A backend under test: one data location, opened as often as a suite needs. Each suite gets its
/// own.
///
/// A suite drops a store before it opens the next one, unless it calls `open_second`.
pub trait Backend: Send + Sync {
    /// Opens the data as a fresh process would after the old one is gone. The store is migrated and
    /// ready.
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>>;

    /// What would be found if everything stopped at this moment, while the store is still open and
    /// perhaps in the middle of a call. It is only read from, at once. Where a server keeps the
    /// data, a second connection is such an image: it sees what is stored.
    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>>;

    /// The clock of every store opened here.
    fn clock(&self) -> Arc<ManualClock>;

    /// Opens another store on the same data, used at the same time as `first`. Where only one
    /// process may have the data open, that is `first` itself.
    fn open_second(&self, first: &Arc<dyn Store>) -> StoreFuture<'_, Arc<dyn Store>> {
        let same = Arc::clone(first);
        Box::pin(async move { Ok(same) })
    }
}

/// Unwraps a value: a suite ends where there is none.
pub trait ExpectValue<T> {
    /// Returns the value; otherwise the suite fails and names the step it was at.
    fn expect_value(self, doing: &str) -> T;
}

impl<T> ExpectValue<T> for Result<T> {
    #[track_caller]
    #[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
    fn expect_value(self, doing: &str) -> T {
        match self {
            Ok(answer) => answer,
            Err(error) => panic!("could not {doing}: {:?}: {error}", error.kind()),
        }
    }
}

impl<T> ExpectValue<T> for Option<T> {
    #[track_caller]
    #[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
    fn expect_value(self, doing: &str) -> T {
        match self {
            Some(answer) => answer,
            None => panic!("could not {doing}: there is none"),
        }
    }
}

impl<T> ExpectValue<T> for std::result::Result<T, tokio::task::JoinError> {
    #[track_caller]
    #[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
    fn expect_value(self, doing: &str) -> T {
        match self {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => panic!("could not {doing}: {error}"),
            },
        }
    }
}

/// Creates a multi-threaded runtime, so that races in a suite are real ones.
#[must_use]
#[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
pub fn runtime() -> tokio::runtime::Runtime {
    match tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("could not start a runtime: {error}"),
    }
}
