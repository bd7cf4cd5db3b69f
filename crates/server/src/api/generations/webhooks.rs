//! Webhooks of providers. They need no bearer token: the token in the URL is of one attempt, and
//! the signature is the provider's own.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;
use tidegate_dispatch::{WebhookReceipt, WebhookRefusal};

use super::super::HandlerResult;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode};
use crate::state::SharedPartition;
use crate::wire::object::truncate_name;

pub(crate) async fn receive(
    State(app): State<SharedPartition>,
    Path((provider, token)): Path<(String, String)>,
    headers: HeaderMap,
    body: RequestBody,
) -> HandlerResult {
    let generations = app.generations()?;
    let body = body.read().await?;
    let received = generations.receive(&provider, &token, &headers, &body).await;
    let outcome = match &received {
        Ok(WebhookReceipt::Polling) => "accepted",
        Ok(WebhookReceipt::Stale) => "stale",
        Err(_) => "refused",
    };
    let label = if outcome == "refused" { "unknown".to_owned() } else { provider.clone() };
    metrics::counter!("tidegate_webhooks_total", "provider" => label, "outcome" => outcome).increment(1);
    match received {
        Ok(_) => Ok((StatusCode::OK, axum::Json(json!({ "status": outcome }))).into_response()),
        Err(refusal) => {
            let error = refusal_error(&provider, refusal);
            tracing::warn!(provider = truncate_name(&provider), %error, "a webhook was refused");
            Err(error.into())
        }
    }
}

fn refusal_error(provider: &str, refusal: WebhookRefusal) -> Error {
    match refusal {
        WebhookRefusal::UnknownProvider => {
            let message = format!("There is no provider {:?}.", truncate_name(provider));
            Error::new(ErrorCode::NoProvider, message)
        }
        WebhookRefusal::BadToken => Error::new(ErrorCode::Unauthorized, "The token is not valid."),
        WebhookRefusal::Refused(error) => {
            Error::new(ErrorCode::Unauthorized, format!("The webhook is not accepted: {error}."))
        }
        other => {
            Error::new(ErrorCode::StoreUnavailable, format!("The webhook cannot be checked now: {other}."))
        }
    }
}
