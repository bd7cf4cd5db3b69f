//! Reads operations: one, with or without waiting for its end; pages of them; why one is not
//! running.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use tidegate::Filter;
use tidegate_core::bounds::WAIT_MS_MAX;
use tidegate_core::id::parse_seq_end;
use tidegate_core::{Seq, State as OperationState};

use super::{HandlerResult, parse_id};
use crate::edge::query::{Query, bad_parameter};
use crate::state::SharedPartition;
use crate::wire::response::{OperationOut, PageOut, WhyOut};
use crate::wire::{cursor, outcome_filter};

/// How many digits of the end of an id are needed to find it, and how many are used.
const ID_END_DIGITS: RangeInclusive<usize> = 8..=12;

pub(super) async fn show(
    State(app): State<SharedPartition>,
    Path(text): Path<String>,
    mut query: Query,
) -> HandlerResult {
    let id = parse_id(&text)?;
    let wait = query.integer("wait_ms", 0..=WAIT_MS_MAX);
    query.finish()?;
    let view = match wait {
        None | Some(0) => app.engine.get(id).await?,
        Some(wait) => tokio::select! {
            view = app.engine.wait_for_outcome(id, Duration::from_millis(wait)) => view?,
            () = app.server.stopping.cancelled() => app.engine.get(id).await?,
        },
    };
    let details = app.engine.details(&view).await?;
    Ok(Json(OperationOut::detailed(&view, &details)).into_response())
}

pub(super) async fn why(
    State(app): State<SharedPartition>,
    Path(text): Path<String>,
    query: Query,
) -> HandlerResult {
    query.finish()?;
    let id = parse_id(&text)?;
    app.engine.record_demand(app.server.work.demand()).await?;
    let reason = app.engine.why(id).await?;
    Ok(Json(WhyOut::new(&reason)).into_response())
}

pub(super) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let mut filter = read_filter(&mut query);
    filter.before = query.read("cursor", |text| cursor::read(text, &filter));
    query.finish()?;
    let page = app.engine.list(filter.clone()).await?;
    let next_cursor = page.next.map(|id| cursor::write(id, &filter));
    let operations = page.operations.iter().map(OperationOut::line).collect();
    Ok(Json(PageOut { operations, next_cursor }).into_response())
}

/// Reads the filter of a list, without its cursor.
pub(crate) fn read_filter(query: &mut Query) -> Filter {
    let [group, kind, upstream, dedupe_key] =
        ["group", "kind", "upstream", "dedupe_key"].map(|name| query.take(name).map(Into::into));
    let mut filter = Filter::default()
        .with_states(query.read("state", parse_states).unwrap_or_default())
        .with_created_after(query.time("created_after"))
        .with_created_before(query.time("created_before"))
        .with_outcome(outcome_filter::read_query(query))
        .with_limit(query.limit());
    (filter.group, filter.kind, filter.upstream, filter.dedupe_key) = (group, kind, upstream, dedupe_key);
    filter.seq = query.read("id_end", parse_id_end);
    filter
}

/// Parses the end of an id as pages show it: all of it is in the sequence number.
fn parse_id_end(text: &str) -> crate::error::Result<Seq> {
    let seq = parse_seq_end(text).filter(|_| ID_END_DIGITS.contains(&text.len()));
    seq.ok_or_else(|| bad_parameter("id_end", "must be the last 8 to 12 digits of an id"))
}

/// Parses comma-separated states, each once and in their own order.
pub(super) fn parse_states(words: &str) -> crate::error::Result<Vec<OperationState>> {
    let wanted: Option<Vec<_>> = words.split(',').map(OperationState::parse).collect();
    let wanted = wanted.ok_or_else(|| {
        let known: Vec<_> = OperationState::ALL.into_iter().map(OperationState::as_str).collect();
        bad_parameter("state", &format!("must be one of {}, or several, comma-separated", known.join(", ")))
    })?;
    Ok(OperationState::ALL.into_iter().filter(|state| wanted.contains(state)).collect())
}
