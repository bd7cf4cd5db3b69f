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
use crate::wire::work::{TakenOut, WorkItemOut, parse_extend, parse_settle, parse_take};

/// Waits for operations that may run now, wherever they are.
pub(super) async fn take(State(server): State<Arc<ServerState>>, body: RequestBody) -> HandlerResult {
    let (request, wait) = parse_take(&body.read().await?, &server.remote_kinds)?;
    let claims = server.work.take(request, wait, &server.stopping).await;
    metrics::counter!("tidegate_work_taken_total").increment(claims.len() as u64);
    Ok(Json(TakenOut { claims: claims.into_iter().map(|claim| claim.json).collect() }).into_response())
}

/// Extends claims of operations of this partition.
pub(super) async fn extend(State(app): State<SharedPartition>, body: RequestBody) -> HandlerResult {
    let items = parse_extend(&body.read().await?)?;
    let (places, good) = split(items);
    let answers = app.engine.extend_work(good.clone()).await?;
    let answers = good.iter().zip(answers).map(|((claim, _), answer)| WorkItemOut::extended(*claim, answer));
    Ok(Json(json!({ "claims": merge(places, answers) })).into_response())
}

/// Settles claims of operations of this partition.
pub(super) async fn settle(State(app): State<SharedPartition>, body: RequestBody) -> HandlerResult {
    let items = parse_settle(&body.read().await?, app.server.clock.now())?;
    let (places, good) = split(items);
    let claims: Vec<_> = good.iter().map(|settlement| settlement.claim).collect();
    let receipts = app.engine.settle_work(good).await?;
    let answers = claims.into_iter().zip(receipts).map(|(claim, receipt)| match receipt {
        Ok(receipt) => WorkItemOut::settled(claim, receipt),
        Err(error) => WorkItemOut::Refused(Box::new(Error::from(error).into())),
    });
    Ok(Json(json!({ "settlements": merge(places, answers) })).into_response())
}

/// Separates the valid members of a batch from the others, whose answers are known.
fn split<T>(items: Vec<Result<T>>) -> (Vec<Option<WorkItemOut>>, Vec<T>) {
    let (mut places, mut good) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        places.push(
            item.map(|item| good.push(item)).err().map(|error| WorkItemOut::Refused(Box::new(error.into()))),
        );
    }
    (places, good)
}

/// The answers in the order of the members.
fn merge(
    places: Vec<Option<WorkItemOut>>,
    mut answers: impl Iterator<Item = WorkItemOut>,
) -> Vec<WorkItemOut> {
    places.into_iter().filter_map(|place| place.or_else(|| answers.next())).collect()
}
