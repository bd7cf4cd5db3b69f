//! Opens the store that a URL names. It is the one place that knows all stores; the libraries built
//! on them re-export it as `store`. It decides nothing, and knows no operation.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> tidegate_backend::Result<()> {
//! // Or `file:DIR`, `redis://HOST:6379`, `postgres://USER@HOST/DATABASE`.
//! let store = tidegate_backend::open("memory:").await?;
//! // Creates what is missing, such as tables.
//! store.migrate().await?;
//! println!("{}", store.describe());
//! # Ok(())
//! # }
//! ```
//!
//! | URL | feature | for |
//! | --- | --- | --- |
//! | `memory:`, `file:DIR` | `embedded` | one process |
//! | `redis://`, `rediss://`, `redis+cluster://` | `redis` | any number of processes |
//! | `postgres://` | `postgres` | any number of processes |

use std::sync::Arc;

#[doc(inline)]
pub use tidegate_store::*;
#[cfg(feature = "embedded")]
#[doc(inline)]
pub use tidegate_store_embedded as embedded;
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use tidegate_store_postgres as postgres;
#[cfg(feature = "redis")]
#[doc(inline)]
pub use tidegate_store_redis as redis;

/// A kind of store, as the scheme of a URL names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreScheme {
    /// `memory:` and `file:DIR`, for one process.
    Embedded,
    /// `redis://` and its variants for TLS and clusters.
    Redis,
    /// `postgres://` and `postgresql://`.
    Postgres,
}

impl StoreScheme {
    /// The kind of store that a URL names; `None` for another URL.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "memory" | "file" => Some(Self::Embedded),
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => Some(Self::Redis),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }

    /// Whether several processes may share such a store.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::Embedded)
    }
}

/// Opens the store that a URL names. It creates no tables: [`Upkeep::migrate`] does, and an engine
/// calls that when it opens.
///
/// # Errors
/// `Invalid` when the URL names no store, or one that this program was built without; otherwise the
/// error of opening it.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    match StoreScheme::of(url) {
        #[cfg(feature = "embedded")]
        Some(StoreScheme::Embedded) => {
            let (url, clock) = (url.to_owned(), Arc::new(SteadyClock::new()));
            // Opening may read and repair files, which would block an async task.
            let opened = tokio::task::spawn_blocking(move || embedded::open(&url, clock)).await;
            opened.unwrap_or_else(|_| {
                Err(Error::new(StoreErrorKind::Unavailable, "Opening the store was interrupted."))
            })
        }
        #[cfg(feature = "redis")]
        Some(StoreScheme::Redis) => redis::open(url).await,
        #[cfg(feature = "postgres")]
        Some(StoreScheme::Postgres) => Ok(Arc::new(postgres::PostgresStore::connect(url).await?)),
        #[cfg(not(all(feature = "embedded", feature = "redis", feature = "postgres")))]
        Some(scheme) => {
            let message = format!("This program is built without the store that the URL names ({scheme:?}).");
            Err(Error::new(StoreErrorKind::Invalid, message))
        }
        None => {
            let message =
                "The URL of a store starts with memory:, file:, redis: or postgres:; this one does not.";
            Err(Error::new(StoreErrorKind::Invalid, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_says_who_may_share_the_store() {
        let table = [
            ("memory:", Some(false)),
            ("file:tidegate-data", Some(false)),
            ("redis://h:1", Some(true)),
            ("rediss+cluster://h:1", Some(true)),
            ("postgresql://h/d", Some(true)),
            ("mysql://h", None),
            ("memory", None),
        ];
        for (url, is_shared) in table {
            assert_eq!(StoreScheme::of(url).map(StoreScheme::is_shared), is_shared, "{url}");
        }
    }

    #[tokio::test]
    async fn another_url_is_invalid_and_not_repeated_in_the_error() {
        let error = open("mysql://me:hunter2@host").await.err().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
