//! What calls cost, asked of whoever keeps it: the store, or the archive beside one that has no tables.

use tidegate_store::Store;
use tidegate_store::costs::{Bill, Question};

use crate::archiver::Archiving;
use crate::error::{Code, Error, Result};
use crate::query::ARCHIVE_MAX;

/// What calls cost, by shape; `None` where it is not kept.
///
/// # Errors
/// When whoever keeps it cannot be asked now.
pub async fn bill(
    store: &dyn Store,
    archiving: Option<&Archiving>,
    question: Question,
) -> Result<Option<Bill>> {
    if let Some(costs) = store.costs() {
        return Ok(Some(costs.bill(question).await?));
    }
    let Some(archiving) = archiving else { return Ok(None) };
    let away = |why: String| {
        Error::new(
            Code::StoreUnavailable,
            format!("costs are in the archive, which cannot be asked now: {why}"),
        )
    };
    match tokio::time::timeout(ARCHIVE_MAX, archiving.archive.bill(question)).await {
        Ok(Ok(bill)) => Ok(Some(bill)),
        Ok(Err(error)) => Err(away(error.to_string())),
        Err(_) => Err(away(format!("it does not answer within {} s", ARCHIVE_MAX.as_secs()))),
    }
}
