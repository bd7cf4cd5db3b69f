//! What fal's errors mean. A status alone misleads: a service behind the model that failed is a
//! 400, and a refused prompt is a 422.

use serde_json::Value;

use crate::fault::{CallKind, FaultCause, ProviderFault, ThrottleScope, detail_message};
use crate::response::ProviderResponse;

/// The fault of a response.
pub(super) fn fault(kind: CallKind, response: &ProviderResponse<'_>) -> ProviderFault {
    let body = response.json();
    let message = detail_message(&body).unwrap_or_else(|| response.describe());
    let by_body = body_cause(&body, response.header("x-fal-error-type"));
    let cause = match (response.status, by_body) {
        // Given up by the deadline that the submit itself set.
        (504, _) if response.header("x-fal-request-timeout-type") == Some("user") => FaultCause::Deadline,
        (400..500, Some(cause)) | (500..600, Some(cause @ FaultCause::Provider)) => cause,
        (403, None) if is_locked(&message) => FaultCause::Credit,
        _ => kind.cause(response, ThrottleScope::Account),
    };
    ProviderFault::new(cause, message)
}

/// The cause that a body gives whatever the status is: an error type of fal's own machinery, a
/// service behind the model (with status 400), or the content checker (with status 422).
pub(super) fn body_cause(body: &Value, error_type: Option<&str>) -> Option<FaultCause> {
    let problems = body.get("detail").and_then(Value::as_array).into_iter().flatten();
    let types: Vec<&str> = problems.filter_map(|problem| problem.get("type")?.as_str()).collect();
    let error_type = error_type.or_else(|| body.get("error_type")?.as_str());
    if types.contains(&"content_policy_violation") {
        Some(FaultCause::Content)
    } else if types.contains(&"downstream_service_error")
        || types.contains(&"downstream_service_unavailable")
        || error_type.is_some()
    {
        Some(FaultCause::Provider)
    } else {
        None
    }
}

/// Whether a 403 is about the account's balance.
fn is_locked(message: &str) -> bool {
    let message = message.to_lowercase();
    ["locked", "balance", "credit"].iter().any(|word| message.contains(word))
}
