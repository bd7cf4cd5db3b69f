//! Opens the store that a URL names. The only module that knows all stores.

use std::sync::Arc;

use tidegate::{Error, ErrorCode, Result};
use tidegate_store::{Archive, Clock, Store, StoreErrorKind};

/// Returns a URL that is safe to show: without user, password and query.
#[must_use]
pub fn redact_url(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, place)) => format!("{scheme}://{place}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    }
}

/// Whether several processes may share the store that a URL names.
pub(crate) fn is_shared(url: &str) -> bool {
    !(url.starts_with("file:") || url.starts_with("memory:"))
}

/// Whether ended operations of the store that a URL names can be copied to an archive.
pub(crate) fn can_archive(url: &str) -> bool {
    matches!(url.split(':').next(), Some("redis" | "rediss" | "redis+cluster" | "rediss+cluster"))
}

/// Whether a URL names an archive.
pub(crate) fn is_archive(url: &str) -> bool {
    matches!(url.split(':').next(), Some("postgres" | "postgresql"))
}

/// Opens the store that a URL names, and its archive if there is one. The archive need not be
/// reachable yet.
///
/// # Errors
/// The store's own error if it cannot be opened; a bad URL of the archive.
pub(crate) async fn open_archived(
    url: &str,
    archive: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<dyn Store>, Option<Arc<dyn Archive>>)> {
    let Some(archive) = archive else { return Ok((open(url, clock).await?, None)) };
    if !can_archive(url) {
        let message =
            format!("There is no archive for {}: only a store on Redis can have one.", redact_url(url));
        return Err(Error::new(ErrorCode::BadConfig, message));
    }
    let archive = tidegate_store_postgres::PostgresArchive::at(archive).map_err(bad_store_url)?;
    let store =
        tidegate_store_redis::RedisStore::open(url).await.map_err(bad_store_url)?.with_archive_queue();
    Ok((Arc::new(store), Some(Arc::new(archive))))
}

/// Opens the store that a URL names.
///
/// # Errors
/// The store's own error if it cannot be opened.
pub async fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "postgres" | "postgresql" => {
            let store = tidegate_store_postgres::PostgresStore::connect(url).await.map_err(bad_store_url)?;
            Ok(Arc::new(store))
        }
        "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => {
            tidegate_store_redis::open(url).await.map_err(bad_store_url)
        }
        _ => {
            // Opening may read and repair files, which would block an async task.
            let url = url.to_owned();
            let opened =
                tokio::task::spawn_blocking(move || tidegate_store_embedded::open(&url, clock)).await;
            match opened {
                Ok(store) => store.map_err(bad_store_url),
                Err(_) => Err(Error::new(ErrorCode::Internal, "Opening the store was interrupted.")),
            }
        }
    }
}

/// Maps a bad store URL to an error of the configuration rather than an internal one.
fn bad_store_url(error: tidegate_store::Error) -> Error {
    match error.kind() {
        StoreErrorKind::Invalid => Error::new(ErrorCode::BadConfig, error.to_string()),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: a bad URL is reported as an error of the configuration.
    #[tokio::test]
    async fn ops_22_a_url_that_makes_no_sense_is_a_bad_configuration() {
        for url in
            ["redis://127.0.0.1:1?prefx=tg", "redis://127.0.0.1:1?prefix={x}", "postgres://h/db?schema=A-B"]
        {
            let error = open(url, Arc::new(tidegate_store::WallClock)).await.err().unwrap();
            assert_eq!(error.code, ErrorCode::BadConfig, "{url}: {}", error.message);
        }
    }

    /// OPS-22: the shown URL of a store never contains a password.
    #[test]
    fn ops_22_a_url_is_shown_without_its_secrets() {
        let table = [
            ("file:tidegate-data", "file:tidegate-data"),
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("rediss://me:s3cr@t@host:1/2?prefix=x", "rediss://host:1/2"),
            ("postgres://me:s3cret@host/db?password=s3cret", "postgres://host/db"),
        ];
        for (url, expected) in table {
            assert_eq!(redact_url(url), expected);
        }
    }
}
