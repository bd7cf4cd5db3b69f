//! Submits one operation, or a batch of which exactly the valid ones are accepted.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderName, LOCATION};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate::{Receipt, RequestKey};
use tidegate_core::bounds::BATCH_ACCEPT_MAX;
use tidegate_core::{OperationId, State as OperationState};
use tidegate_idempotency::HeldKey;
use tokio::time::Instant;

use super::HandlerResult;
use crate::edge::content::{self, RequestBody};
use crate::edge::prefer::WaitPreference;
use crate::edge::query::Query;
use crate::edge::repeated_submission::SubmittedOperation;
use crate::edge::request_id::RequestId;
use crate::error::{Error, Result};
use crate::state::SharedPartition;
use crate::telemetry;
use crate::wire::error::status;
use crate::wire::response::{AcceptedOut, AwaitedOperationOut, BatchItemOut, BatchOut, OperationOut};
use crate::wire::{request, submission};

pub(super) async fn submit_one(
    State(app): State<SharedPartition>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    (submitted, key): (Option<Extension<SubmittedOperation>>, Option<Extension<HeldKey>>),
    headers: HeaderMap,
    mut query: Query,
    body: RequestBody,
) -> HandlerResult {
    let started = Instant::now();
    let wait = WaitPreference::read(&mut query, &headers);
    query.finish()?;
    if let (Some(Extension(SubmittedOperation { id, deduplicated })), Some(wait)) = (submitted, wait) {
        return wait_for_outcome(&app, id, deduplicated, wait).await;
    }
    let body = body.read().await?;
    let submission = submission::parse_one(&body, &request_id)
        .map_err(|error| content::explain_format(error, &headers))
        .inspect_err(telemetry::record_refused)?
        .with_request_key(key.map(|Extension(key)| request_key(key)));
    drop(body);
    app.server.remote_kinds.check_shape(&submission).inspect_err(telemetry::record_refused)?;
    let (group, payload) = (std::sync::Arc::clone(&submission.group), submission.payload.clone());
    let receipt =
        app.engine.submit(submission).await.map_err(|error| request::explain(error.into(), &payload));
    let receipt = receipt.inspect_err(telemetry::record_refused)?;
    telemetry::record_accepted(started, receipt.deduplicated);
    if let Some(wait) = wait {
        return wait_for_outcome(&app, receipt.id, receipt.deduplicated, wait).await;
    }
    let status = if receipt.deduplicated { StatusCode::OK } else { StatusCode::ACCEPTED };
    let location = location(receipt.id);
    Ok((status, location, Json(AcceptedOut::new(receipt, Some(&group)))).into_response())
}

/// The key of a request, for the operation that it submits. When its process dies before the key is
/// settled, the request that takes the key over finds the operation.
fn request_key(HeldKey { name, ttl, since }: HeldKey) -> RequestKey {
    RequestKey { name, window: ttl, new_since: since.map(|since| since.elapsed()) }
}

/// Where the state of the operation is found.
fn location(id: OperationId) -> [(HeaderName, String); 1] {
    [(LOCATION, format!("/v1/operations/{id}"))]
}

/// Waits for the outcome of the operation, or for the timeout, and returns it. It is accepted in
/// either case.
async fn wait_for_outcome(
    app: &SharedPartition,
    id: OperationId,
    deduplicated: bool,
    wait: WaitPreference,
) -> HandlerResult {
    let view = tokio::select! {
        view = app.engine.wait_for_outcome(id, wait.most) => view?,
        () = app.server.stopping.cancelled() => app.engine.get(id).await?,
    };
    let details = app.engine.details(&view).await?;
    let operation = OperationOut::detailed(&view, &details);
    let body = Json(AwaitedOperationOut { operation, deduplicated });
    let status = waited_status(view.state);
    let mut response = (status, location(id), body).into_response();
    wait.mark_applied(&mut response);
    Ok(response)
}

/// The status after a wait: 202 if the operation has no outcome yet, whoever submitted it first.
pub(crate) fn waited_status(state: OperationState) -> StatusCode {
    let is_over = state.is_ended() || state == OperationState::Unknown;
    if is_over { StatusCode::OK } else { StatusCode::ACCEPTED }
}

pub(super) async fn submit_batch(
    State(app): State<SharedPartition>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    body: RequestBody,
) -> HandlerResult {
    let started = Instant::now();
    let body = body.read().await?;
    let read = submission::parse_batch(&body, BATCH_ACCEPT_MAX, &request_id)
        .map_err(|error| content::explain_format(error, &headers))?;
    drop(body);
    let mut places = Vec::with_capacity(read.len());
    let mut good = Vec::with_capacity(read.len());
    let mut payloads = Vec::with_capacity(read.len());
    for item in read {
        let item =
            item.and_then(|submission| app.server.remote_kinds.check_shape(&submission).map(|()| submission));
        places.push(item.map(|submission| {
            payloads.push(submission.payload.clone());
            good.push(submission);
        }));
    }
    let mut receipts = app.engine.submit_all(good).await.into_iter().zip(payloads);
    let answers: Vec<_> = places
        .into_iter()
        .filter_map(|place| match place {
            Ok(()) => receipts
                .next()
                .map(|(answer, payload)| answer.map_err(|error| request::explain(error.into(), &payload))),
            Err(error) => Some(Err(error)),
        })
        .collect();
    for answer in &answers {
        match answer {
            Ok(receipt) => telemetry::record_accepted(started, receipt.deduplicated),
            Err(error) => telemetry::record_refused(error),
        }
    }
    if let Some(error) = whole_batch_error(&answers) {
        return Err(error.into());
    }
    let operations = answers.into_iter().map(batch_item).collect();
    Ok((StatusCode::ACCEPTED, Json(BatchOut { operations })).into_response())
}

fn batch_item(answer: Result<Receipt>) -> BatchItemOut {
    match answer {
        Ok(receipt) => BatchItemOut::Accepted(AcceptedOut::new(receipt, None)),
        Err(error) => BatchItemOut::Refused(Box::new(error.into())),
    }
}

/// The error of a whole batch that may be sent again: nothing could be stored, and no member was
/// invalid.
fn whole_batch_error(answers: &[Result<Receipt>]) -> Option<Error> {
    let first = answers.first()?.as_ref().err()?;
    let same = |answer: &Result<Receipt>| answer.as_ref().is_err_and(|error| error.code == first.code);
    let all = status(first.code) == StatusCode::SERVICE_UNAVAILABLE && answers.iter().all(same);
    all.then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, State, Time};

    use super::*;
    use crate::error::ErrorCode;

    /// A batch of which nothing could be stored fails as a whole; one with invalid members does
    /// not.
    #[test]
    fn a_batch_fails_as_a_whole_only_when_nothing_can_be_kept() {
        let failed = |code| Err(Error::new(code, "…"));
        let id = OperationId::new(Time::ZERO, 0, Seq(1));
        let good = || Ok(Receipt { id, state: State::Queued, deduplicated: false });
        let code_of = |answers: Vec<Result<Receipt>>| whole_batch_error(&answers).map(|error| error.code);
        let full = ErrorCode::StoreUnavailable;
        assert_eq!(code_of(vec![failed(full), failed(full)]), Some(full));
        assert_eq!(code_of(vec![failed(ErrorCode::Stopping)]), Some(ErrorCode::Stopping));
        assert_eq!(code_of(vec![failed(full), good()]), None);
        assert_eq!(code_of(vec![failed(full), failed(ErrorCode::Invalid)]), None);
        assert_eq!(code_of(vec![failed(ErrorCode::Invalid), failed(ErrorCode::Invalid)]), None);
        assert_eq!(code_of(Vec::new()), None);
    }
}
