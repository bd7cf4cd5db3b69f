//! fal's webhooks: signed with Ed25519 over request, user, time and the hash of the body.

use ring::digest;
use serde_json::Value;

use super::error::body_cause;
use crate::fault::{FaultCause, ProviderFault, detail_message};
use crate::status::{JobStatus, OutputFile, collect_urls};
use crate::webhook::{
    ReceivedWebhook, Webhook, WebhookError, WebhookKeys, WebhookReport, check_timestamp, header,
};

/// Verifies a webhook and reads it.
pub(super) fn receive(webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
    let request_id = verify(webhook, keys)?;
    let body: Value = serde_json::from_slice(webhook.body).map_err(|_| WebhookError::Unreadable)?;
    let job_id = body.get("request_id").and_then(Value::as_str).ok_or(WebhookError::Unreadable)?;
    let payload = body.get("payload").filter(|payload| !payload.is_null());
    let status = match (body.get("status").and_then(Value::as_str), payload) {
        (Some("OK"), Some(payload)) => JobStatus::Succeeded(files(payload)),
        // The output was too large, or no JSON: it is read by a poll.
        (Some("OK"), None) => JobStatus::ResultReady,
        (Some("ERROR"), payload) => JobStatus::Failed(reported_fault(&body, payload)),
        _ => return Err(WebhookError::Unreadable),
    };
    Ok(ReceivedWebhook::Signed(WebhookReport {
        delivery_id: Some(request_id.to_owned()),
        job_id: Some(job_id.to_owned()),
        status,
    }))
}

/// The files of an output: whatever is called `url` in it.
pub(super) fn files(output: &Value) -> Vec<OutputFile> {
    collect_urls(output, |key, _| key == Some("url"))
}

/// Verifies the signature over request, user, time and hash of the body, one per line.
fn verify<'a>(webhook: &Webhook<'a>, keys: &WebhookKeys) -> Result<&'a str, WebhookError> {
    let WebhookKeys::Jwks(keys) = keys else { return Err(WebhookError::NoKey) };
    let request_id = header(webhook, "x-fal-webhook-request-id")?;
    let user_id = header(webhook, "x-fal-webhook-user-id")?;
    let time = header(webhook, "x-fal-webhook-timestamp")?;
    let signature =
        from_hex(header(webhook, "x-fal-webhook-signature")?).ok_or(WebhookError::Missing("signature"))?;
    check_timestamp(time, webhook.received_at)?;
    let hash = to_hex(digest::digest(&digest::SHA256, webhook.body).as_ref());
    let message = format!("{request_id}\n{user_id}\n{time}\n{hash}");
    if keys.verifies_ed25519(message.as_bytes(), &signature) {
        Ok(request_id)
    } else {
        Err(WebhookError::Forged)
    }
}

/// The fault of a webhook, by the payload and the status in `Invalid status code: 422`.
fn reported_fault(body: &Value, payload: Option<&Value>) -> ProviderFault {
    let error = body.get("error").and_then(Value::as_str).unwrap_or("the request failed");
    let status = error.rsplit(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500);
    let payload = payload.unwrap_or(&Value::Null);
    let message = detail_message(payload).unwrap_or_else(|| error.to_owned());
    let cause = body_cause(payload, None).unwrap_or(match status {
        400 | 413 | 422 => FaultCause::Input,
        504 => FaultCause::Deadline,
        500..600 => FaultCause::Provider,
        _ => FaultCause::Unexplained,
    });
    ProviderFault::new(cause, message)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
