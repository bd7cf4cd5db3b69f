//! Opens the configured store, and an archive next to it.

use std::sync::Arc;

use tidegate_backend::postgres::PostgresArchive;
use tidegate_backend::redis::RedisStore;
use tidegate_backend::{Archive, Store, StoreErrorKind, StoreScheme};

use crate::error::{Error, ErrorCode, Result};

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
    StoreScheme::of(url).is_some_and(StoreScheme::is_shared)
}

/// Whether ended operations of the store that a URL names can be copied to an archive.
pub(crate) fn can_archive(url: &str) -> bool {
    StoreScheme::of(url) == Some(StoreScheme::Redis)
}

/// Whether a URL names an archive.
pub(crate) fn is_archive(url: &str) -> bool {
    StoreScheme::of(url) == Some(StoreScheme::Postgres)
}

/// Opens the store that a URL names, and its archive if there is one. The archive need not be
/// reachable yet.
///
/// # Errors
/// The store's own error if it cannot be opened; a bad URL of the archive.
pub(crate) async fn open_archived(
    url: &str,
    archive: Option<&str>,
) -> Result<(Arc<dyn Store>, Option<Arc<dyn Archive>>)> {
    let Some(archive) = archive else { return Ok((open(url).await?, None)) };
    if !can_archive(url) {
        let message =
            format!("There is no archive for {}: only a store on Redis can have one.", redact_url(url));
        return Err(Error::new(ErrorCode::BadConfig, message));
    }
    let archive = PostgresArchive::at(archive).map_err(bad_store_url)?;
    let store = RedisStore::open(url).await.map_err(bad_store_url)?.with_archive_queue();
    Ok((Arc::new(store), Some(Arc::new(archive))))
}

/// Opens the store that a URL names.
///
/// # Errors
/// The store's own error if it cannot be opened.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    tidegate_backend::open(url).await.map_err(bad_store_url)
}

/// Maps a bad store URL to an error of the configuration rather than an internal one.
fn bad_store_url(error: tidegate_backend::Error) -> Error {
    match error.kind() {
        StoreErrorKind::Invalid => Error::new(ErrorCode::BadConfig, error.to_string()).with_source(error),
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
            let error = open(url).await.err().unwrap();
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
