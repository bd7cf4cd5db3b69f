//! Groups: what each waits for, and stopping and starting them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate::{Code, Error, GroupFilter, Result};
use tidegate_core::bounds::NOTE_LEN_MAX;

use super::Answer;
use super::operations::{PAGE_DEFAULT, PAGE_MAX};
use crate::app::Shared;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::edge::query::{Query, bad};
use crate::wire::answer::{GroupOut, GroupsOut};
use crate::wire::field::Field;
use crate::wire::object::read;

pub(super) async fn list(State(app): State<Shared>, mut query: Query) -> Answer {
    let limit = query.integer("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let state = query.take("state");
    let after = query.take("after").map(Arc::from);
    query.finish()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let which = match state.as_deref() {
        None => GroupFilter::All,
        Some("stopped") => GroupFilter::Stopped,
        Some("held") => GroupFilter::Held,
        Some("paused") => GroupFilter::Paused,
        Some(_) => return Err(bad("state", "must be one of held, paused, stopped").into()),
    };
    let page = app.engine.groups(which, after, limit).await?;
    let partition = app.engine.partition();
    let groups = page.groups.iter().map(|(view, why)| GroupOut::new(partition, view, why.as_ref())).collect();
    Ok(Json(GroupsOut { groups, next: page.next.as_deref() }).into_response())
}

pub(super) async fn show(State(app): State<Shared>, Path(name): Path<String>, query: Query) -> Answer {
    query.finish()?;
    let (view, why, line) = app.engine.group(&name).await?;
    Ok(Json(GroupOut::new(app.engine.partition(), &view, why.as_ref()).with_line(&line)).into_response())
}

pub(super) async fn pause(
    State(app): State<Shared>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    let body = content::read(body, content::SMALL_MAX, app.house.read_timeout).await?;
    let [by, reason] = if body.is_empty() { [None, None] } else { read(&body, &["by", "reason"])? };
    let by = note("by", Field { name: "by", raw: by })?.unwrap_or_else(|| caller.to_string());
    let reason = note("reason", Field { name: "reason", raw: reason })?.unwrap_or_default();
    let view = app.engine.pause(&name, &by, &reason).await?;
    tracing::info!(group = name, by, reason, caller = &*caller, "group paused");
    Ok(Json(GroupOut::new(app.engine.partition(), &view, None)).into_response())
}

fn note(name: &str, field: Field<'_>) -> Result<Option<String>> {
    let text = field.text()?;
    if text.as_ref().is_some_and(|text| text.len() > NOTE_LEN_MAX || text.chars().any(char::is_control)) {
        let message = format!("The field {name:?} must be at most {NOTE_LEN_MAX} bytes on one line.");
        return Err(Error::new(Code::Invalid, message).field(name));
    }
    Ok(text)
}

pub(super) async fn resume(
    State(app): State<Shared>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    app.engine.resume(&name).await?;
    tracing::info!(group = name, caller = &*caller, "group resumed");
    match app.engine.group(&name).await {
        Ok((view, why, _)) => {
            Ok(Json(GroupOut::new(app.engine.partition(), &view, why.as_ref())).into_response())
        }
        // Nothing was in it, so nothing is known of it any more.
        Err(error) if error.code == Code::NoGroup => Ok(Json(GroupOut::idle(&name)).into_response()),
        Err(error) => Err(error.into()),
    }
}
