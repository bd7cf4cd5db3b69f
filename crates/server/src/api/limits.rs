//! Limits: how they stand, and setting them to other figures.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};

use super::Answer;
use crate::app::Shared;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::edge::query::Query;
use crate::wire::answer::{LimitOut, LimitsOut};
use crate::wire::limit::{Wish, wish};

pub(super) async fn list(State(app): State<Shared>, query: Query) -> Answer {
    query.finish()?;
    let mut limits = app.engine.limits().await?;
    limits.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let limits = limits.iter().map(LimitOut::new).collect();
    Ok(Json(LimitsOut { limits }).into_response())
}

pub(super) async fn change(
    State(app): State<Shared>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    let body = content::read(body, content::SMALL_MAX, app.house.read_timeout).await?;
    let wish = wish(&body)?;
    let view = match wish {
        Wish::Set(shape) => app.engine.set_limit(&name, shape).await?,
        Wish::Open => app.engine.thaw(&name).await?,
        Wish::Reset => app.engine.reset_limit(&name).await?,
    };
    tracing::info!(limit = name, by = &*caller, to = %wish, "limit changed");
    Ok(Json(LimitOut::new(&view)).into_response())
}
