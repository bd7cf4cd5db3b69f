//! Queries call costs from the store, or from the archive of a store that has no tables.

use tidegate_core::bounds::ARCHIVE_TIMEOUT;
use tidegate_store::Store;
use tidegate_store::costs::{CostQuery, CostReport};

use crate::archiver::SharedArchive;
use crate::error::{Error, ErrorKind, Result};

/// Returns call costs by shape; `None` where they are not kept.
///
/// # Errors
/// When the costs cannot be queried now.
pub async fn cost_report(
    store: &dyn Store,
    archiving: Option<&SharedArchive>,
    question: CostQuery,
) -> Result<Option<CostReport>> {
    if let Some(costs) = store.costs() {
        return Ok(Some(costs.cost_report(question).await?));
    }
    let Some(archiving) = archiving else { return Ok(None) };
    let away = |why: String| {
        Error::new(
            ErrorKind::StoreUnavailable,
            format!("costs are in the archive, which is unavailable: {why}"),
        )
    };
    match tokio::time::timeout(ARCHIVE_TIMEOUT, archiving.archive.cost_report(question)).await {
        Ok(Ok(report)) => Ok(Some(report)),
        Ok(Err(error)) => Err(away(error.to_string()).with_source(error)),
        Err(_) => Err(away(format!("it did not respond within {} s", ARCHIVE_TIMEOUT.as_secs()))),
    }
}
