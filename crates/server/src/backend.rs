//! Which store a URL names. The only place that knows all of them.

use std::sync::Arc;

use tidegate::{Code, Error, Result};
use tidegate_store::{Clock, Store};

/// A URL as it may be shown: without a user, a password or what follows a question mark.
#[must_use]
pub fn shown(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, place)) => format!("{scheme}://{place}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    }
}

/// Whether many processes may use the store that a URL names.
pub(crate) fn is_shared(url: &str) -> bool {
    !(url.starts_with("file:") || url.starts_with("memory:"))
}

/// Opens the store that a URL names.
///
/// # Errors
/// Whatever keeps it from being opened, in its own words.
pub async fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "postgres" | "postgresql" => Ok(Arc::new(tidegate_store_postgres::Postgres::connect(url).await?)),
        "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => Ok(tidegate_store_redis::open(url).await?),
        _ => {
            // Opening may read and repair files, which is no work for an async task.
            let url = url.to_owned();
            let opened =
                tokio::task::spawn_blocking(move || tidegate_store_embedded::open(&url, clock)).await;
            match opened {
                Ok(store) => Ok(store?),
                Err(_) => Err(Error::new(Code::Internal, "Opening the store ended before its time.")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: what is shown of a store never has a password in it.
    #[test]
    fn ops_22_a_url_is_shown_without_its_secrets() {
        let table = [
            ("file:tidegate-data", "file:tidegate-data"),
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("rediss://me:s3cr@t@host:1/2?prefix=x", "rediss://host:1/2"),
            ("postgres://me:s3cret@host/db?password=s3cret", "postgres://host/db"),
        ];
        for (url, expected) in table {
            assert_eq!(shown(url), expected);
        }
    }
}
