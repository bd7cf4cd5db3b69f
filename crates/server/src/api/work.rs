//! Remote workers: take operations with a long poll, extend their claims, settle them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;

use super::HandlerResult;
use crate::edge::content::RequestBody;
use crate::error::{Error, Result};
use crate::state::{ServerState, SharedPartition};
use crate::wire::work::{NamedClaim, TakenOut, WorkItemOut, parse_extend, parse_settle, parse_take};

/// Waits for operations that may run now, wherever they are.
pub(super) async fn take(State(server): State<Arc<ServerState>>, body: RequestBody) -> HandlerResult {
    let (request, wait) = parse_take(&body.read().await?, &server.remote_kinds)?;
    let claims = server.work.take(request, wait, &server.stopping).await;
    metrics::counter!("tidegate_work_taken_total").increment(claims.len() as u64);
    Ok(Json(TakenOut { claims: claims.into_iter().map(|claim| claim.json).collect() }).into_response())
}

/// Extends claims of operations of this partition.
pub(super) async fn extend(State(app): State<SharedPartition>, body: RequestBody) -> HandlerResult {
    let body = body.read().await?;
    let (places, good) = split(parse_extend(&body)?);
    let answers = app.engine.extend_work(good.clone()).await?;
    let answers = good.iter().zip(answers).map(|((claim, _), answer)| WorkItemOut::extended(*claim, answer));
    let named = NamedClaim::of_batch(&body, "claims");
    Ok(Json(json!({ "claims": merge(places, named, answers.map(Ok)) })).into_response())
}

/// Settles claims of operations of this partition.
pub(super) async fn settle(State(app): State<SharedPartition>, body: RequestBody) -> HandlerResult {
    let body = body.read().await?;
    let (places, good) = split(parse_settle(&body, app.server.clock.now())?);
    let claims: Vec<_> = good.iter().map(|settlement| settlement.claim).collect();
    let receipts = app.engine.settle_work(good).await?;
    let answers = claims.into_iter().zip(receipts).map(|(claim, receipt)| {
        receipt.map(|receipt| WorkItemOut::settled(claim, receipt)).map_err(Error::from)
    });
    let named = NamedClaim::of_batch(&body, "settlements");
    Ok(Json(json!({ "settlements": merge(places, named, answers) })).into_response())
}

/// Separates the valid members of a batch from the others, whose answers are known.
fn split<T>(items: Vec<Result<T>>) -> (Vec<Option<Error>>, Vec<T>) {
    let (mut places, mut good) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        places.push(item.map(|item| good.push(item)).err());
    }
    (places, good)
}

/// The answers in the order of the members; errors have the claims that these name.
fn merge(
    places: Vec<Option<Error>>,
    named: Vec<NamedClaim>,
    mut answers: impl Iterator<Item = Result<WorkItemOut>>,
) -> Vec<WorkItemOut> {
    let member = |(place, claim): (Option<Error>, NamedClaim)| {
        let answer = place.map(Err).or_else(|| answers.next())?;
        Some(answer.unwrap_or_else(|error| WorkItemOut::refused(claim, error)))
    };
    places.into_iter().zip(named).filter_map(member).collect()
}
