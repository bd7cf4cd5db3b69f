//! Groups: what each waits for, pausing and resuming.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate::{ErrorKind, Filter, GroupFilter, OperationOutline, Reason};
use tidegate_core::Seq;
use tidegate_core::model::GroupView;

use super::HandlerResult;
use super::command_reason::read_reason_and_strict;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::state::SharedPartition;
use crate::wire::cursor;
use crate::wire::field::Field;
use crate::wire::object::{Fields, read, truncate_name};
use crate::wire::response::{GroupOut, GroupsOut};

/// How many pages are searched for an operation of a group.
const PAGES_MAX: usize = 20;

pub(super) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let limit = query.limit();
    let (which, after) = read_list(&mut query);
    query.finish()?;
    let page = app.engine.groups(which, after, limit).await?;
    let partition = app.engine.partition();
    let outlines =
        read_outlines(&app, page.groups.iter().flat_map(|(view, _)| GroupOut::seqs_of(view))).await;
    let groups = page
        .groups
        .iter()
        .map(|(view, why)| GroupOut::new(partition, view, why.as_ref()).with_outlines(view, &outlines));
    let groups = groups.collect();
    let next_cursor = page.next.as_deref().map(|next| next_cursor(next, which));
    Ok(Json(GroupsOut { groups, next_cursor, next: page.next.as_deref() }).into_response())
}

/// Reads which groups are requested, and after which name. `after` is the name itself, from before
/// there were cursors.
pub(crate) fn read_list(query: &mut Query) -> (GroupFilter, Option<Arc<str>>) {
    let which = query.read("state", |word| match word {
        "stopped" => Ok(GroupFilter::Stopped),
        "held" => Ok(GroupFilter::Held),
        "paused" => Ok(GroupFilter::Paused),
        _ => Err(bad_parameter("state", "must be one of held, paused, stopped")),
    });
    let which = which.unwrap_or(GroupFilter::All);
    let after = query.take("after");
    let cursor = query.read("cursor", |text| cursor::read_text(text, cursor_list(which)));
    (which, cursor.or(after).map(Arc::from))
}

pub(crate) fn next_cursor(next: &str, which: GroupFilter) -> String {
    cursor::write_text(next, cursor_list(which))
}

/// The list that a cursor belongs to.
const fn cursor_list(which: GroupFilter) -> &'static str {
    match which {
        GroupFilter::All => "groups",
        GroupFilter::Stopped => "groups stopped",
        GroupFilter::Held => "groups held",
        GroupFilter::Paused => "groups paused",
    }
}

pub(super) async fn show(
    State(app): State<SharedPartition>,
    Path(name): Path<String>,
    query: Query,
) -> HandlerResult {
    query.finish()?;
    let (view, why, line) = app.engine.group(&name).await?;
    let seqs = GroupOut::seqs_of(&view).chain(line.iter().map(|view| view.id.seq()));
    let outlines = read_outlines(&app, seqs).await;
    let group = GroupOut::new(app.engine.partition(), &view, why.as_ref()).with_line(&line);
    Ok(Json(group.with_outlines(&view, &outlines)).into_response())
}

/// What the store knows of operations that are shown from memory. While the store is away, they are
/// shown without it.
pub(super) async fn read_outlines(
    app: &SharedPartition,
    seqs: impl Iterator<Item = Seq>,
) -> BTreeMap<Seq, OperationOutline> {
    let seqs: BTreeSet<Seq> = seqs.collect();
    app.engine.outlines(&Vec::from_iter(seqs)).await.unwrap_or_default()
}

/// The response to a command about a group.
async fn group_response(app: &SharedPartition, view: &GroupView, why: Option<&Reason>) -> HandlerResult {
    let outlines = read_outlines(app, GroupOut::seqs_of(view)).await;
    let group = GroupOut::new(app.engine.partition(), view, why);
    Ok(Json(group.with_outlines(view, &outlines)).into_response())
}

pub(super) async fn pause(
    State(app): State<SharedPartition>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values: [by, reason, create, strict], mut problems } =
        if body.is_empty() { Fields::empty() } else { read(&body, &["by", "reason", "create", "strict"])? };
    let by = problems.check(Field { name: "by", raw: by }.text());
    let by = by.unwrap_or_else(|| caller.to_string());
    let reason = problems.check(Field { name: "reason", raw: reason }.text()).unwrap_or_default();
    let may_create = problems.check(Field { name: "create", raw: create }.flag()).unwrap_or(false);
    let strict = problems.check(Field { name: "strict", raw: strict }.flag()).unwrap_or(false);
    problems.finish()?;
    if !may_create && !is_known_group(&app, &name).await? {
        let hint = "To pause it before its first operation, send create: true.";
        return Err(unknown_group_error(&name, hint).into());
    }
    let view = if strict {
        app.engine.pause_unpaused(&name, &by, &reason).await?
    } else {
        app.engine.pause(&name, &by, &reason).await?
    };
    tracing::info!(group = name, by, reason, caller = &*caller, "group paused");
    group_response(&app, &view, None).await
}

/// Whether any operation has this group, ended or not.
pub(super) async fn is_known_group(app: &SharedPartition, name: &str) -> Result<bool> {
    match app.engine.group(name).await {
        Err(error) if error.kind == ErrorKind::NoGroup => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Ok(true),
    }
    let mut filter = Filter::default().with_group(name).with_limit(1);
    for _ in 0..PAGES_MAX {
        let page = app.engine.list_without_requests(filter.clone()).await?;
        if !page.operations.is_empty() {
            return Ok(true);
        }
        filter.before = page.next;
        if filter.before.is_none() {
            break;
        }
    }
    Ok(false)
}

/// The error for a name that no operation has: most likely it is misspelled, and the intended group
/// would stay as it is.
pub(super) fn unknown_group_error(name: &str, hint: &str) -> Error {
    let message = format!("No operation has the group {:?}; check the spelling. {hint}", truncate_name(name));
    Error::new(ErrorCode::NoGroup, message.trim_end()).field("group")
}

pub(super) async fn resume(
    State(app): State<SharedPartition>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let strict = read_reason_and_strict(body).await?;
    let resumed = match strict {
        true => app.engine.resume_stopped(&name).await,
        false => app.engine.resume(&name).await,
    };
    match resumed {
        Ok(()) => tracing::info!(group = name, caller = &*caller, "group resumed"),
        // All its operations have ended: there is nothing to resume.
        Err(error) if error.kind == ErrorKind::NoGroup => {
            if !is_known_group(&app, &name).await? {
                return Err(unknown_group_error(&name, "").into());
            }
        }
        Err(error) => return Err(error.into()),
    }
    match app.engine.group(&name).await {
        Ok((view, why, _)) => group_response(&app, &view, why.as_ref()).await,
        // It was empty, so it is not known any more.
        Err(error) if error.kind == ErrorKind::NoGroup => Ok(Json(GroupOut::idle(&name)).into_response()),
        Err(error) => Err(error.into()),
    }
}
