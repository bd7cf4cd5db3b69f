//! Commands about all operations that a filter finds: cancel, rerun, resolve. A dry run counts them
//! and changes nothing.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate::{ErrorKind, SeenOutcome};
use tidegate_core::model::Resolution;
use tidegate_core::{OperationId, State as OperationState};

use super::HandlerResult;
use super::bulk_selection::{FIELDS, Selection};
use super::commands::RESOLUTIONS;
use crate::audit::AuditHint;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::error::{Result, sentence};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};

/// The most operations that a response names; the audit log names as many.
const IDS_MAX: usize = 100;

/// The fields of a command that says what happened.
#[rustfmt::skip]
const RESOLVE_FIELDS: [&str; 16] = [
    "as", "unknown_before", "group", "state", "upstream", "kind", "created_after", "created_before", "dry_run",
    "reason", "error", "fault_class", "fault_message", "may_have_happened", "finished_after",
    "finished_before",
];

/// What became of a bulk command.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct BulkOut {
    /// Operations that the filter found.
    pub(super) matched: u64,
    /// Operations that were changed.
    pub(super) changed: u64,
    /// Operations that could not be changed.
    pub(super) refused: u64,
    /// Why the first of those could not.
    pub(super) problem: Option<String>,
    /// Whether there may be more.
    pub(super) more: bool,
    /// Whether it only counted.
    dry_run: bool,
    /// The first of those that it changed, or would change, in that order.
    pub(super) ids: Vec<String>,
}

impl BulkOut {
    /// Adds up what several partitions say.
    pub(crate) fn merge(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.matched += part.matched;
            all.changed += part.changed;
            all.refused += part.refused;
            all.problem = all.problem.or(part.problem);
            all.more |= part.more;
            all.dry_run |= part.dry_run;
            all.ids.extend(part.ids);
        }
        truncate_ids(&mut all.ids);
        all
    }
}

/// Keeps as many ids as a response names.
pub(super) fn truncate_ids(ids: &mut Vec<String>) {
    ids.truncate(IDS_MAX);
}

impl IntoResponse for BulkOut {
    fn into_response(self) -> Response {
        let hint = match self.dry_run {
            true => AuditHint::Preview,
            false => AuditHint::Changed { count: self.changed, ids: self.ids.as_slice().into() },
        };
        (Extension(hint), Json(self)).into_response()
    }
}

/// What to do with each operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkVerb {
    Cancel,
    Rerun,
    Resolve(Resolution, SeenOutcome),
}

impl BulkVerb {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Rerun => "rerun",
            Self::Resolve(..) => "resolve",
        }
    }

    /// The states that it is about where none is given. What was canceled on purpose is not rerun.
    pub(super) const fn default_states(self) -> &'static [OperationState] {
        match self {
            Self::Cancel => &[OperationState::Queued, OperationState::Waiting, OperationState::Running],
            Self::Rerun => &[OperationState::Failed],
            Self::Resolve(..) => &[OperationState::Unknown],
        }
    }

    pub(super) fn applies_to(self, state: OperationState) -> bool {
        match self {
            Self::Cancel => state.can_cancel(),
            Self::Rerun => state.can_rerun(),
            Self::Resolve(..) => state == OperationState::Unknown,
        }
    }

    /// Whether it begins with the newest. Canceled from the end of a queue, no operation starts
    /// because the one before it was canceled. Those that run again keep their order, also over
    /// several calls.
    pub(super) const fn is_newest_first(self) -> bool {
        matches!(self, Self::Cancel)
    }

    /// Does it to an operation of a selection; whether it took effect.
    async fn apply(
        self,
        app: &PartitionState,
        id: OperationId,
        selection: &Selection,
    ) -> tidegate::Result<bool> {
        match self {
            // One that ended in the meantime stays as it ended.
            Self::Cancel => app
                .engine
                .cancel(id)
                .await
                .map(|view| view.state == OperationState::Canceled || view.cancel_requested),
            Self::Rerun => app.engine.rerun_as_seen(id, selection.ended_before()).await.map(|_| true),
            Self::Resolve(resolution, seen) => {
                app.engine.resolve_as_seen(id, resolution, seen, Bytes::new()).await.map(|_| true)
            }
        }
    }
}

pub(super) async fn cancel(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    command_filtered(&app, &caller, body, BulkVerb::Cancel).await
}

pub(super) async fn rerun(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    command_filtered(&app, &caller, body, BulkVerb::Rerun).await
}

async fn command_filtered(
    app: &PartitionState,
    caller: &Caller,
    body: RequestBody,
    verb: BulkVerb,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values, mut problems } = read(&body, &FIELDS)?;
    let (selection, dry_run) = Selection::read(&values, verb, &mut problems)?;
    respond(app, caller, verb, &selection, dry_run).await
}

pub(super) async fn resolve(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values: [resolved_as, before, values @ ..], mut problems } = read(&body, &RESOLVE_FIELDS)?;
    let resolution = Field { name: "as", raw: resolved_as }.word(&RESOLUTIONS);
    let resolution = resolution.and_then(|word| word.map(Some).ok_or_else(|| missing("as")));
    // The states are the same whatever happened.
    let resolution = problems.check(resolution).unwrap_or(Resolution::Failed);
    let before = problems.check(Field { name: "unknown_before", raw: before }.time());
    let verb = BulkVerb::Resolve(resolution, SeenOutcome::default().with_before(before));
    let (selection, dry_run) = Selection::read(&values, verb, &mut problems)?;
    respond(&app, &caller, verb, &selection, dry_run).await
}

async fn respond(
    app: &PartitionState,
    caller: &Caller,
    verb: BulkVerb,
    selection: &Selection,
    dry_run: bool,
) -> HandlerResult {
    if dry_run {
        let (found, more) = selection.find(app, verb).await?;
        let (matched, ids) = (found.len() as u64, found.iter().take(IDS_MAX).map(OperationId::to_string));
        let counted = BulkOut { matched, more, dry_run, ids: ids.collect(), ..BulkOut::default() };
        return Ok(counted.into_response());
    }
    let done = apply(app, verb, selection).await?;
    let (order, changed, refused) = (verb.name(), done.changed, done.refused);
    tracing::info!(by = &*caller.0, order, changed, refused, "a person's order about several operations");
    Ok(done.into_response())
}

/// Applies a command to everything that a selection finds.
pub(super) async fn apply(app: &PartitionState, verb: BulkVerb, selection: &Selection) -> Result<BulkOut> {
    let (found, more) = selection.find(app, verb).await?;
    let mut done = BulkOut { matched: found.len() as u64, more, ..BulkOut::default() };
    for id in found {
        match verb.apply(app, id, selection).await {
            Ok(true) => {
                done.changed += 1;
                if done.ids.len() < IDS_MAX {
                    done.ids.push(id.to_string());
                }
            }
            Ok(false) => done.refused += 1,
            Err(error) if concerns_all(error.kind) => return Err(error.into()),
            // It is not there any more, was changed a moment ago, or cannot be.
            Err(error) => {
                done.refused += 1;
                done.problem.get_or_insert(sentence(&error.message));
            }
        }
    }
    Ok(done)
}

/// Whether the next operation would fail in the same way.
const fn concerns_all(kind: ErrorKind) -> bool {
    use ErrorKind::{Internal, Stopping, StoreRefused, StoreUnavailable};
    matches!(kind, StoreUnavailable | Stopping | StoreRefused | Internal)
}
