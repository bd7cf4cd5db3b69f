//! What Google's errors mean: a key that is not valid is a 400, and a quota of a day is exhausted
//! until midnight whatever its hint says.

use std::time::Duration;

use serde_json::Value;
use tidegate_core::bounds::RETRY_AFTER_MAX;

use super::pacific::until_midnight;
use crate::fault::{CallKind, FaultCause, ProviderFault, ThrottleScope};
use crate::response::ProviderResponse;

/// The fault of a response. The response to a synchronous call ends it: nothing comes later.
pub(super) fn fault(kind: CallKind, is_synchronous: bool, response: &ProviderResponse<'_>) -> ProviderFault {
    let body = response.json();
    let error = &body["error"];
    let message = error["message"].as_str().map_or_else(|| response.describe(), str::to_owned);
    let is_own = error["status"].is_string();
    // Limits are per project, not per key.
    let cause = match kind.cause(response, ThrottleScope::Account) {
        FaultCause::Throttled { after, scope } => {
            FaultCause::Throttled { after: wait(error, &message, response).max(after), scope }
        }
        FaultCause::Input if is_bad_key(error) => FaultCause::Auth,
        // The project may not use the API: by its place, or without billing.
        FaultCause::Input if error["status"] == "FAILED_PRECONDITION" => FaultCause::Auth,
        FaultCause::Unknown if is_own && is_synchronous && response.status == 500 => FaultCause::Provider,
        cause => cause,
    };
    ProviderFault::new(cause, message)
}

fn details<'a>(error: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_kind = move |detail: &&Value| detail["@type"].as_str().is_some_and(|name| name.ends_with(kind));
    error["details"].as_array().into_iter().flatten().filter(is_kind)
}

fn is_bad_key(error: &Value) -> bool {
    details(error, "google.rpc.ErrorInfo").any(|info| info["reason"] == "API_KEY_INVALID")
        || error["message"].as_str().is_some_and(|message| message.starts_with("API key "))
}

/// How long to wait: to midnight for a quota of a day, otherwise what the details or the message
/// say.
fn wait(error: &Value, message: &str, response: &ProviderResponse<'_>) -> Option<Duration> {
    let mut violations = details(error, "google.rpc.QuotaFailure")
        .filter_map(|failure| failure["violations"].as_array())
        .flatten();
    if violations.any(|violation| violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"))) {
        return Some(until_midnight(response.received_at));
    }
    let hint = details(error, "google.rpc.RetryInfo").find_map(|info| seconds(info["retryDelay"].as_str()?));
    hint.or_else(|| {
        let (_, rest) = message.split_once("retry in ")?;
        seconds(rest.split_inclusive('s').next()?)
    })
}

/// Reads `26s` and `58.8s`.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= RETRY_AFTER_MAX)
}
