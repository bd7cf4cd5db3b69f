//! Limits: their state, and changing their figures.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};

use super::HandlerResult;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::state::SharedPartition;
use crate::wire::cursor;
use crate::wire::limit::{LimitRequest, parse_limit_request};
use crate::wire::response::{LimitOut, LimitsOut};
use tidegate_core::bounds::PAGE_ITEMS_MAX;

pub(super) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let page = read_list(&mut query);
    query.finish()?;
    if page.with_history {
        let load = app.engine.load().await?;
        app.limit_history.record(app.server.clock.now(), &load);
    }
    let with_history = page.with_history;
    let mut limits = app.engine.limits().await?;
    limits.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let (limits, next_cursor) = page.select(limits, |limit| &limit.name);
    let partition = app.engine.partition();
    let limits = limits.iter().map(|limit| {
        let shown = LimitOut::new(limit, partition);
        if with_history { shown.with_hour(app.limit_history.hour(&limit.name)) } else { shown }
    });
    let limits = limits.collect();
    Ok(Json(LimitsOut { limits, next_cursor }).into_response())
}

/// The list that its cursors belong to.
const LIST: &str = "limits";

/// The requested page of limits: all of them, unless the query has a limit.
pub(crate) struct LimitPage {
    after: Option<String>,
    most: Option<usize>,
    /// Whether each has its last hour.
    pub with_history: bool,
}

pub(crate) fn read_list(query: &mut Query) -> LimitPage {
    let most = query.integer("limit", 1..=PAGE_ITEMS_MAX).and_then(|most| usize::try_from(most).ok());
    let after = query.read("cursor", |text| cursor::read_text(text, LIST));
    let with_history = query.read("history", |word| match word {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(bad_parameter("history", "must be true or false")),
    });
    LimitPage { after, most, with_history: with_history.unwrap_or(false) }
}

impl LimitPage {
    /// Selects the page from all limits, which are sorted by name, and returns the cursor of the
    /// next page.
    pub(crate) fn select<T>(self, all: Vec<T>, name: impl Fn(&T) -> &str) -> (Vec<T>, Option<String>) {
        let is_behind = |one: &T| self.after.as_deref().is_none_or(|after| name(one) > after);
        let mut wanted: Vec<T> = all.into_iter().filter(is_behind).collect();
        let most = self.most.unwrap_or(usize::MAX);
        let is_last = wanted.len() <= most;
        wanted.truncate(most);
        let next = wanted.last().filter(|_| !is_last).map(|last| cursor::write_text(name(last), LIST));
        (wanted, next)
    }
}

pub(super) async fn show(State(app): State<SharedPartition>, Path(name): Path<String>) -> HandlerResult {
    let view = app.engine.limit(&name).await?;
    Ok(Json(LimitOut::new(&view, app.engine.partition())).into_response())
}

pub(super) async fn change(
    State(app): State<SharedPartition>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let wish = parse_limit_request(&body)?;
    let view = match wish {
        LimitRequest::Set(shape) => app.engine.set_limit(&name, shape).await?,
        LimitRequest::Open { strict: true } => app.engine.thaw_closed(&name).await?,
        LimitRequest::Open { strict: false } => app.engine.thaw(&name).await?,
        LimitRequest::Reset => app.engine.reset_limit(&name).await?,
    };
    tracing::info!(limit = name, by = &*caller, to = %wish, "limit changed");
    Ok(Json(LimitOut::new(&view, app.engine.partition())).into_response())
}
