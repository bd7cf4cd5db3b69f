//! Handing in: one operation, or a batch of which exactly the good ones are accepted.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate_core::bounds::BATCH_ACCEPT_MAX;
use tokio::time::Instant;

use super::Answer;
use crate::app::Shared;
use crate::edge::content;
use crate::edge::request_id::RequestId;
use crate::telemetry;
use crate::wire::answer::{Accepted, Member, Members};
use crate::wire::submission;

pub(super) async fn one(
    State(app): State<Shared>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    body: Body,
) -> Answer {
    let started = Instant::now();
    let body = content::read(body, content::ONE_MAX, app.read_timeout).await?;
    let submission = submission::one(&body, &request_id).inspect_err(telemetry::refused)?;
    drop(body);
    let group = std::sync::Arc::clone(&submission.group);
    let receipt = app.engine.submit(submission).await.inspect_err(telemetry::refused)?;
    telemetry::accepted(started, receipt.deduplicated);
    let status = if receipt.deduplicated { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(Accepted::new(receipt, Some(&group)))).into_response())
}

pub(super) async fn batch(
    State(app): State<Shared>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    body: Body,
) -> Answer {
    let started = Instant::now();
    let body = content::read(body, content::BATCH_MAX, app.read_timeout).await?;
    let read = submission::many(&body, BATCH_ACCEPT_MAX, &request_id)?;
    drop(body);
    let mut places = Vec::with_capacity(read.len());
    let mut good = Vec::with_capacity(read.len());
    for item in read {
        places.push(item.map(|submission| good.push(submission)));
    }
    let mut receipts = app.engine.submit_all(good).await.into_iter();
    let operations = places
        .into_iter()
        .filter_map(|place| match place {
            Ok(()) => receipts.next(),
            Err(error) => Some(Err(error)),
        })
        .map(|answer| match answer {
            Ok(receipt) => {
                telemetry::accepted(started, receipt.deduplicated);
                Member::Accepted(Accepted::new(receipt, None))
            }
            Err(error) => {
                telemetry::refused(&error);
                Member::Refused(error.into())
            }
        })
        .collect();
    Ok((StatusCode::ACCEPTED, Json(Members { operations })).into_response())
}
