//! Groups: what each waits for, and stopping and starting them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate::{Code, Error, Filter, GroupFilter, Result};
use tidegate_core::bounds::NOTE_LEN_MAX;

use super::Answer;
use crate::app::Shared;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::edge::query::{Query, bad};
use crate::wire::answer::{GroupOut, GroupsOut};
use crate::wire::cursor;
use crate::wire::field::Field;
use crate::wire::object::{Fields, read, shown};

/// Pages that are looked through for an operation of a group.
const PAGES_MAX: usize = 20;

pub(super) async fn list(State(app): State<Shared>, mut query: Query) -> Answer {
    let limit = query.limit();
    let (which, after) = read_list(&mut query);
    query.finish()?;
    let page = app.engine.groups(which, after, limit).await?;
    let partition = app.engine.partition();
    let groups = page.groups.iter().map(|(view, why)| GroupOut::new(partition, view, why.as_ref())).collect();
    let next_cursor = page.next.as_deref().map(|next| next_cursor(next, which));
    Ok(Json(GroupsOut { groups, next_cursor, next: page.next.as_deref() }).into_response())
}

/// Which groups, and behind which name. `after` is what a cursor was before there were cursors: the
/// name itself.
pub(crate) fn read_list(query: &mut Query) -> (GroupFilter, Option<Arc<str>>) {
    let which = query.read("state", |word| match word {
        "stopped" => Ok(GroupFilter::Stopped),
        "held" => Ok(GroupFilter::Held),
        "paused" => Ok(GroupFilter::Paused),
        _ => Err(bad("state", "must be one of held, paused, stopped")),
    });
    let which = which.unwrap_or(GroupFilter::All);
    let after = query.take("after");
    let cursor = query.read("cursor", |text| cursor::read_text(text, list_of(which)));
    (which, cursor.or(after).map(Arc::from))
}

pub(crate) fn next_cursor(next: &str, which: GroupFilter) -> String {
    cursor::write_text(next, list_of(which))
}

/// What a cursor is for.
const fn list_of(which: GroupFilter) -> &'static str {
    match which {
        GroupFilter::All => "groups",
        GroupFilter::Stopped => "groups stopped",
        GroupFilter::Held => "groups held",
        GroupFilter::Paused => "groups paused",
    }
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
    let Fields { values: [by, reason, create], mut problems } =
        if body.is_empty() { Fields::none() } else { read(&body, &["by", "reason", "create"])? };
    let by = problems.check(note("by", Field { name: "by", raw: by }));
    let by = by.unwrap_or_else(|| caller.to_string());
    let reason = problems.check(note("reason", Field { name: "reason", raw: reason })).unwrap_or_default();
    let may_create = problems.check(Field { name: "create", raw: create }.flag()).unwrap_or(false);
    problems.finish()?;
    if !may_create {
        must_be_known(&app, &name).await?;
    }
    let view = app.engine.pause(&name, &by, &reason).await?;
    tracing::info!(group = name, by, reason, caller = &*caller, "group paused");
    Ok(Json(GroupOut::new(app.engine.partition(), &view, None)).into_response())
}

/// Refuses a name that no operation has: most likely it is misspelled, and what was meant would go
/// on.
async fn must_be_known(app: &Shared, name: &str) -> Result<()> {
    match app.engine.group(name).await {
        Err(error) if error.code == Code::NoGroup => {}
        known => return known.map(drop),
    }
    let mut filter = Filter { group: Some(name.into()), limit: 1, ..Filter::default() };
    for _ in 0..PAGES_MAX {
        let page = app.engine.list(filter.clone()).await?;
        if !page.operations.is_empty() {
            return Ok(());
        }
        filter.before = page.next;
        if filter.before.is_none() {
            break;
        }
    }
    let message = format!(
        "No operation has the group {:?}; check the spelling. To pause it before its first operation, send create: true.",
        shown(name)
    );
    Err(Error::new(Code::NoGroup, message).field("group"))
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
