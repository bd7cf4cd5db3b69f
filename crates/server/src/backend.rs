//! Which store a URL names. The only place that knows all of them.

use std::sync::Arc;

use tidegate::{Code, Error, Result};
use tidegate_store::{Clock, Store};

/// Opens the store that a URL names.
///
/// # Errors
/// Whatever keeps it from being opened, in its own words.
pub async fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "postgres" | "postgresql" => Ok(Arc::new(tidegate_store_postgres::Postgres::connect(url).await?)),
        "redis" | "rediss" | "redis+cluster" => Ok(tidegate_store_redis::open(url).await?),
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
