//! Which store a URL names. The only place that knows all of them.

use std::sync::Arc;

use tidegate::{Code, Error, Result};
use tidegate_store::{Archive, Clock, Store};

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

/// Whether what ends in the store that a URL names can be copied to an archive.
pub(crate) fn has_trail(url: &str) -> bool {
    matches!(url.split(':').next(), Some("redis" | "rediss" | "redis+cluster" | "rediss+cluster"))
}

/// Whether a URL names an archive.
pub(crate) fn is_archive(url: &str) -> bool {
    matches!(url.split(':').next(), Some("postgres" | "postgresql"))
}

/// Opens the store that a URL names, and the archive beside it when there is one. The archive need not be there yet.
///
/// # Errors
/// Whatever keeps the store from being opened, in its own words; an archive whose URL makes no sense.
pub(crate) async fn open_archived(
    url: &str,
    archive: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<dyn Store>, Option<Arc<dyn Archive>>)> {
    let Some(archive) = archive else { return Ok((open(url, clock).await?, None)) };
    if !has_trail(url) {
        let message = format!("There is no archive beside {}: only Redis notes what ended.", shown(url));
        return Err(Error::new(Code::BadConfig, message));
    }
    let archive = tidegate_store_postgres::PostgresArchive::at(archive)?;
    let store = tidegate_store_redis::Redis::open(url).await?.noting_ends();
    Ok((Arc::new(store), Some(Arc::new(archive))))
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
