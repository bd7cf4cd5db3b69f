//! Commands about the recent failures of a group, or of all generations: dismiss them, and restore
//! them. Neither changes an operation.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::bounds::GROUP_LEN_MAX;
use tidegate_dispatch::KIND as GENERATION;

use super::HandlerResult;
use super::command_reason::read_reason;
use crate::dismissals::{self, Dismissal, FailureSource};
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};
use crate::wire::time::Timestamp;

/// Whose failures a response is about: one of the two.
#[derive(Default, Serialize)]
struct SourceOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl SourceOut {
    /// Reads whose failures a command is about.
    fn read(group: Option<&RawValue>, kind: Option<&RawValue>) -> Result<Self> {
        let group_field = Field { name: "group", raw: group };
        let group = group_field.text()?;
        let kind = Field { name: "kind", raw: kind }.word(&[(GENERATION, GENERATION)])?;
        if group.is_some() == kind.is_some() {
            let message = format!("Name a group, or the kind {GENERATION}, and not both.");
            return Err(Error::new(ErrorCode::Invalid, message).field("group"));
        }
        if let Some(group) = &group {
            group_field.check_line(group, 1..=GROUP_LEN_MAX)?;
        }
        Ok(Self { group, kind })
    }

    fn source(&self) -> FailureSource<'_> {
        self.group.as_deref().map_or(FailureSource::Generations, FailureSource::Group)
    }
}

/// Failures that are dismissed.
#[derive(Serialize)]
struct DismissalOut {
    #[serde(flatten)]
    source: SourceOut,
    through: Timestamp,
    by: String,
    at: Timestamp,
    reason: Option<String>,
}

/// Failures that show again.
#[derive(Serialize)]
struct RestorationOut {
    #[serde(flatten)]
    source: SourceOut,
    /// Whether they were dismissed.
    restored: bool,
}

pub(super) async fn dismiss(
    State(server): State<Arc<ServerState>>,
    Extension(Caller(by)): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values: [group, kind, through, reason, strict], mut problems } =
        read(&body, &["group", "kind", "through", "reason", "strict"])?;
    let source = problems.check(SourceOut::read(group, kind));
    let through = Field { name: "through", raw: through }.time();
    let through = problems.check(through.and_then(|time| time.ok_or_else(|| missing("through"))));
    let reason = problems.check(read_reason(Field { name: "reason", raw: reason }));
    let strict = problems.check(Field { name: "strict", raw: strict }.flag());
    problems.finish()?;
    let new = Dismissal::new(through, &by, reason, server.clock.now());
    if strict == Some(true) && new.through != through {
        let message = "What has not failed yet cannot be dismissed; `through` must not lie in the future.";
        return Err(Error::new(ErrorCode::Invalid, message).field("through").into());
    }
    let dismissal = dismissals::dismiss(&*server.store, source.source(), new.clone()).await?;
    if strict == Some(true) && dismissal != new {
        let message = format!("These failures are dismissed already, by {}.", dismissal.by);
        return Err(Error::new(ErrorCode::NotNow, message).field("through").into());
    }
    let Dismissal { through, by, at, reason } = dismissal;
    let (through, at) = (Timestamp(through), Timestamp(at));
    Ok(Json(DismissalOut { source, through, by, at, reason }).into_response())
}

pub(super) async fn restore(State(server): State<Arc<ServerState>>, body: RequestBody) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values: [group, kind, reason, strict], mut problems } =
        read(&body, &["group", "kind", "reason", "strict"])?;
    let source = problems.check(SourceOut::read(group, kind));
    problems.check(read_reason(Field { name: "reason", raw: reason }));
    let strict = problems.check(Field { name: "strict", raw: strict }.flag());
    problems.finish()?;
    let restored = dismissals::undismiss(&*server.store, source.source()).await?;
    if strict == Some(true) && !restored {
        return Err(Error::new(ErrorCode::NotNow, "No failures are dismissed there any more.").into());
    }
    Ok(Json(RestorationOut { source, restored }).into_response())
}
