//! Claims operations of one partition of this node for the callers that wait.

use std::sync::Arc;
use std::time::Duration;

use tidegate::upstream::Outcome;
use tidegate::{ClaimId, Engine, ReadyKinds, Verdict, WorkReport};
use tidegate_core::bounds::WORK_CALLERS_MAX;

use super::hub::WorkHub;
use crate::wire::work::handed_claim;

/// The pause after a take that found nothing, unless something changes.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Serves the callers of this node from a partition until its engine stops.
pub(crate) fn attach(hub: &Arc<WorkHub>, engine: &Engine) {
    let (hub, engine) = (Arc::clone(hub), engine.clone());
    tokio::spawn(async move {
        pull(&hub, &engine).await;
        hub.set_ready(engine.partition(), &ReadyKinds::default());
    });
}

async fn pull(hub: &WorkHub, engine: &Engine) {
    let (mut ready, mut calls) = (engine.ready_kinds(), hub.calls());
    let mut most = 1;
    loop {
        let kinds = ready.borrow_and_update().clone();
        hub.set_ready(engine.partition(), &kinds);
        calls.borrow_and_update();
        let reserved = hub.reserve(&kinds, most);
        if reserved.is_empty() {
            // Without anything to claim, it does not matter who waits.
            tokio::select! {
                changed = ready.changed() => if changed.is_err() { return },
                _ = calls.changed(), if !kinds.is_empty() => {}
            }
            continue;
        }
        let requests = reserved.requests();
        let Ok(claims) = engine.take_work(requests.clone()).await else {
            hub.requeue(reserved);
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let is_full = claims.iter().zip(&requests).all(|(claims, request)| claims.len() >= request.max);
        let is_empty = claims.iter().all(Vec::is_empty);
        most = if is_full { (most * 2).min(WORK_CALLERS_MAX) } else { 1 };
        let handed = claims.into_iter().map(|claims| claims.iter().filter_map(handed_claim).collect());
        let undelivered = hub.deliver(reserved, handed.collect());
        give_back(engine, undelivered.iter().map(|handed| handed.claim).collect()).await;
        if is_empty {
            tokio::select! {
                changed = ready.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }
}

/// Returns claims that no worker got.
async fn give_back(engine: &Engine, claims: Vec<ClaimId>) {
    if claims.is_empty() {
        return;
    }
    let returned = |claim| WorkReport { claim, outcome: Outcome::unanswered(Verdict::Returned) };
    if let Err(error) = engine.settle_work(claims.into_iter().map(returned).collect()).await {
        tracing::debug!(%error, "claims without a worker are returned when their leases expire");
    }
}
