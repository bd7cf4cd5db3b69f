//! Reruns the failed operations of a group, oldest first, so that they keep their order at the end
//! of it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use super::HandlerResult;
use super::bulk_commands::{BulkOut, BulkVerb, apply, truncate_ids};
use super::bulk_selection::Selection;
use super::command_reason::read_reason_and_end;
use super::groups::{is_known_group, unknown_group_error};
use crate::audit::AuditHint;
use crate::edge::content::RequestBody;
use crate::state::SharedPartition;

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
    /// The first of those that run again, in their order.
    #[serde(default)]
    ids: Vec<String>,
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
            all.ids.extend(part.ids);
        }
        truncate_ids(&mut all.ids);
        all
    }
}

impl IntoResponse for GroupRerunOut {
    fn into_response(self) -> Response {
        let hint = AuditHint::Changed { count: self.rerun, ids: self.ids.as_slice().into() };
        (Extension(hint), Json(self)).into_response()
    }
}

pub(super) async fn rerun_failed(
    State(app): State<SharedPartition>,
    Path(group): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let ended_before = read_reason_and_end(body).await?;
    let done = apply(&app, BulkVerb::Rerun, &Selection::failed_of(&group, ended_before)).await?;
    if done.matched == 0 && !is_known_group(&app, &group).await? {
        return Err(unknown_group_error(&group, "").into());
    }
    let BulkOut { changed: rerun, refused, problem, more, ids, .. } = done;
    Ok(GroupRerunOut { group, rerun, refused, problem, more, ids }.into_response())
}
