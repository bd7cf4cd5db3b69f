//! What calls cost, by query shape. Any node reads it from the tables of the store or its archive.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::LimitName;
use tidegate_store::costs::{CostLine, CostQuery};

use super::HandlerResult;
use crate::edge::query::Query;
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::response::TokenAmount;
use crate::wire::time::Timestamp;

/// The default period: a day.
const SINCE_S_DEFAULT: u64 = 24 * 3_600;
/// The longest period: a leap year.
const SINCE_S_MAX: u64 = 366 * 24 * 3_600;

/// How many lines pages reach: what comes after that costs next to nothing.
const SKIPPED_MAX: usize = 10_000;

#[derive(Serialize)]
struct CostsOut<'a> {
    /// Whether this store keeps costs.
    kept: bool,
    /// Whether all calls of the period were counted; otherwise only the newest.
    whole: bool,
    since: Timestamp,
    costs: Vec<CostOut<'a>>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct CostOut<'a> {
    name: &'a str,
    shape: &'a str,
    upstream: &'a str,
    limit: &'a str,
    calls: u64,
    requested: TokenAmount,
    actual: TokenAmount,
    mean: f64,
    /// The share of everything spent on this limit.
    share: f64,
    last_at: Timestamp,
}

impl<'a> CostOut<'a> {
    fn new(line: &'a CostLine) -> Self {
        let tokens = |micro: f64| (micro / 1e6 * 1e3).round() / 1e3;
        let share = line.actual as f64 / line.of_limit.max(1) as f64;
        Self {
            name: name_of(&line.shape),
            shape: &line.shape,
            upstream: LimitName::parse(&line.limit).upstream(),
            limit: &line.limit,
            calls: line.calls,
            requested: TokenAmount(line.requested),
            actual: TokenAmount(line.actual),
            mean: tokens(line.actual as f64 / line.calls.max(1) as f64),
            share: (share * 1e4).round() / 1e4,
            last_at: Timestamp(line.last),
        }
    }
}

/// The name of a shape: the text before its hash.
fn name_of(shape: &str) -> &str {
    shape.rsplit_once('#').map_or(shape, |(name, _)| name).trim_end()
}

pub(super) async fn show(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    let upstream: Option<Arc<str>> = query.take("upstream").map(Into::into);
    let since_s = query.integer("since_s", 1..=SINCE_S_MAX).unwrap_or(SINCE_S_DEFAULT);
    let limit = query.limit();
    let list = format!("costs {since_s} {}", upstream.as_deref().unwrap_or_default());
    let skipped = query.read("cursor", |text| parse_cursor(text, &list)).unwrap_or(0);
    query.finish()?;
    let since = server.clock.now().before(Duration::from_secs(since_s));
    let end = skipped + limit;
    // One more than fits shows whether there are more.
    let most = end + 1;
    let question = CostQuery { upstream, since, most };
    let found = tidegate::cost_report(&*server.store, server.archiving.as_ref(), question).await?;
    let (kept, bill) = (found.is_some(), found.unwrap_or_default());
    let costs = bill.lines.iter().take(end).skip(skipped).map(CostOut::new).collect();
    let is_last = bill.lines.len() <= end || end >= SKIPPED_MAX;
    let next_cursor = (!is_last).then(|| cursor::write_text(&end.to_string(), &list));
    let whole = bill.is_whole && kept;
    Ok(Json(CostsOut { kept, whole, since: Timestamp(since), costs, next_cursor }).into_response())
}

/// Parses how many lines the previous pages had.
fn parse_cursor(text: &str, list: &str) -> crate::error::Result<usize> {
    let skipped = cursor::read_text(text, list)?.parse().ok();
    skipped.filter(|skipped| *skipped <= SKIPPED_MAX).ok_or_else(cursor::bad_cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_called_by_what_is_before_its_hash() {
        let table =
            [("GetOrders#1f0c", "GetOrders"), ("GET /orders", "GET /orders"), ("a#b#c", "a#b"), ("#1f", "")];
        for (shape, name) in table {
            assert_eq!(name_of(shape), name);
        }
    }
}
