//! Commands about one operation: cancel, rerun, resolve.

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use tidegate::{OperationView, SeenOutcome};
use tidegate_core::model::Resolution;

use super::command_reason::{read_reason, read_reason_and_end, read_reason_only};
use super::{HandlerResult, parse_id};
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode};
use crate::state::SharedPartition;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};
use crate::wire::response::OperationOut;
use crate::wire::work::stored_result;

/// What may have happened to an operation whose outcome is unknown.
pub(super) const RESOLUTIONS: [(&str, Resolution); 3] =
    [("succeeded", Resolution::Succeeded), ("failed", Resolution::Failed), ("repeat", Resolution::Repeat)];

pub(super) async fn cancel(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let id = parse_id(&text)?;
    read_reason_only(body).await?;
    let view = app.engine.cancel(id).await?;
    operation_response("canceled", &caller, &view)
}

pub(super) async fn rerun(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let id = parse_id(&text)?;
    let ended_before = read_reason_and_end(body).await?;
    let view = app.engine.rerun_as_seen(id, ended_before).await?;
    operation_response("run again", &caller, &view)
}

pub(super) async fn resolve(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let id = parse_id(&text)?;
    let body = body.read().await?;
    let Fields { values: [raw, result, reason, attempt], mut problems } =
        read(&body, &["as", "result", "reason", "attempt"])?;
    let attempt = Field { name: "attempt", raw: attempt }.integer(1..=u64::from(u16::MAX));
    let attempt = problems.check(attempt).and_then(|attempt| u16::try_from(attempt).ok());
    let seen = SeenOutcome::default().with_attempt(attempt);
    problems.check(read_reason(Field { name: "reason", raw: reason }));
    let resolution = Field { name: "as", raw }.word(&RESOLUTIONS);
    let resolution = resolution.and_then(|word| word.map(Some).ok_or_else(|| missing("as")));
    let resolution = problems.check(resolution);
    problems.finish()?;
    let resolution = resolution.ok_or_else(|| missing("as"))?;
    let view = match result.filter(|result| result.get() != "null") {
        None => app.engine.resolve_as_seen(id, resolution, seen, Bytes::new()).await?,
        Some(result) if resolution == Resolution::Succeeded => {
            app.engine.resolve_as_seen(id, resolution, seen, stored_result(result)).await?
        }
        Some(_) => {
            let message = "Only an operation that succeeded has a result.";
            return Err(Error::new(ErrorCode::Invalid, message).field("result").into());
        }
    };
    operation_response("resolved", &caller, &view)
}

fn operation_response(order: &str, caller: &Caller, view: &OperationView) -> HandlerResult {
    tracing::info!(operation_id = %view.id, group = &*view.group, by = &*caller.0, order, "a person's order");
    Ok(Json(OperationOut::whole(view)).into_response())
}
