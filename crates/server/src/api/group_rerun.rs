//! Reruns the failed operations of a group, oldest first, so that they keep their order at the end
//! of it.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use tidegate::{ErrorKind, Filter};
use tidegate_core::bounds::PAGE_ITEMS_MAX;
use tidegate_core::{OperationId, State as OperationState};

use super::HandlerResult;
use crate::edge::content::RequestBody;
use crate::error::Result;
use crate::state::{PartitionState, SharedPartition};

/// The most operations that one call reruns.
const RERUN_MAX: usize = 1_000;
/// How many pages are searched for them.
const PAGES_MAX: usize = 50;

/// What was rerun.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct GroupRerunOut {
    group: String,
    /// Operations that run again.
    rerun: u64,
    /// Operations that could not be rerun.
    refused: u64,
    /// Why the first of those could not.
    problem: Option<String>,
    /// Whether there may be more.
    more: bool,
}

impl GroupRerunOut {
    /// Adds up what several partitions say.
    pub(crate) fn merge(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.group = part.group;
            all.rerun += part.rerun;
            all.refused += part.refused;
            all.problem = all.problem.or(part.problem);
            all.more |= part.more;
        }
        all
    }
}

pub(super) async fn rerun_failed(
    State(app): State<SharedPartition>,
    Path(group): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    body.read_empty().await?;
    let (mut failed, more) = find_failed(&app, &group).await?;
    failed.sort_unstable();
    let mut done = GroupRerunOut { group, more, ..GroupRerunOut::default() };
    for id in failed {
        match app.engine.rerun(id).await {
            Ok(_) => done.rerun += 1,
            Err(error) if concerns_all(error.kind) => return Err(error.into()),
            // It is not there any more, was rerun a moment ago, or cannot be.
            Err(error) => {
                done.refused += 1;
                done.problem.get_or_insert(error.message);
            }
        }
    }
    Ok(Json(done).into_response())
}

/// Whether the next operation would fail in the same way.
const fn concerns_all(kind: ErrorKind) -> bool {
    use ErrorKind::{Internal, Stopping, StoreRefused, StoreUnavailable};
    matches!(kind, StoreUnavailable | Stopping | StoreRefused | Internal)
}

/// The failed operations of a group, and whether there may be more.
async fn find_failed(app: &PartitionState, group: &str) -> Result<(Vec<OperationId>, bool)> {
    let page_len = usize::try_from(PAGE_ITEMS_MAX).unwrap_or(RERUN_MAX);
    let mut filter =
        Filter::default().with_group(group).with_states([OperationState::Failed]).with_limit(page_len);
    let mut found = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = app.engine.list(filter.clone()).await?;
        found.extend(page.operations.iter().map(|view| view.id));
        filter.before = page.next;
        if filter.before.is_none() || found.len() >= RERUN_MAX {
            break;
        }
    }
    let more = filter.before.is_some() || found.len() > RERUN_MAX;
    found.truncate(RERUN_MAX);
    Ok((found, more))
}
