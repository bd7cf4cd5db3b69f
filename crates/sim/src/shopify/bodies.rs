//! Bodies other than data, in the form in which Shopify sends them: `tests/shopify/golden` has each
//! one.

use serde_json::{Map, Value, json};

use super::cost::SINGLE_MAX;
use super::points::PointStatus;

const DOCUMENTATION: &str = "https://shopify.dev/api/usage/rate-limits";

/// The cost that a response reports.
#[derive(Clone, Copy, Debug)]
pub struct CostExtension {
    /// The requested cost.
    pub requested: u64,
    /// The actual cost; none when it did not run.
    pub actual: Option<u64>,
    /// The state of the bucket.
    pub status: PointStatus,
    /// Whether figures are written as decimals. Both forms occur.
    pub decimals: bool,
}

impl CostExtension {
    /// Returns it as `extensions.cost`.
    #[must_use]
    pub fn cost(&self) -> Value {
        let figure = |figure: u64| if self.decimals { json!(figure as f64) } else { json!(figure) };
        json!({
            "requestedQueryCost": self.requested,
            "actualQueryCost": self.actual,
            "throttleStatus": {
                "maximumAvailable": figure(self.status.maximum),
                "currentlyAvailable": figure(self.status.available),
                "restoreRate": figure(self.status.restore_per_s),
            },
        })
    }
}

/// Returns the body of a throttled call.
#[must_use]
pub fn throttled(extension: &CostExtension) -> Value {
    json!({
        "errors": [{
            "message": "Throttled",
            "extensions": {"code": "THROTTLED", "documentation": DOCUMENTATION},
        }],
        "extensions": {"cost": extension.cost()},
    })
}

/// Returns the body of a call that exceeds the highest cost of any shop.
#[must_use]
pub fn too_costly(cost: u64) -> Value {
    let message =
        format!("Query cost is {cost}, which exceeds the single query max cost limit ({SINGLE_MAX}).");
    json!({
        "errors": [{
            "message": message,
            "extensions": {
                "code": "MAX_COST_EXCEEDED", "cost": cost, "maxCost": SINGLE_MAX, "documentation": DOCUMENTATION,
            },
        }],
    })
}

/// Returns data, with the errors next to it and its cost.
#[must_use]
pub fn data_body(data: &Map<String, Value>, errors: Vec<Value>, extension: &CostExtension) -> Value {
    let mut body = json!({ "data": data, "extensions": {"cost": extension.cost()} });
    if !errors.is_empty() {
        body["errors"] = Value::Array(errors);
    }
    body
}

/// Returns the body for an invalid document; it costs nothing.
#[must_use]
pub fn malformed(message: &str) -> Value {
    json!({ "errors": [{"message": message, "extensions": {"code": "BAD_REQUEST"}}] })
}

/// Returns the body for a directive that the version does not have.
#[must_use]
pub fn unknown_directive(name: &str) -> Value {
    let message = format!("Directive @{name} is not defined");
    json!({ "errors": [{
        "message": message, "extensions": {"code": "undefinedDirective", "directiveName": name},
    }] })
}

/// Returns the body for a directive on the operation that only fields may have.
#[must_use]
pub fn misplaced_directive(name: &str) -> Value {
    let message = format!("'@{name}' can't be applied to mutations (allowed: fields)");
    json!({ "errors": [{"message": message, "extensions": {"code": "directiveCannotBeApplied", "name": name}}] })
}

/// Returns the body for a mutation that requires a key and has none.
#[must_use]
pub fn key_required(field: &str) -> Value {
    json!({
        "message": "The @idempotent directive is required for this mutation but was not provided.",
        "path": [field],
        "extensions": {"code": "BAD_REQUEST"},
    })
}

/// Returns an error inside a mutation's response.
#[must_use]
pub fn user_error(code: &str, message: &str) -> Value {
    json!({ "field": null, "code": code, "message": message })
}

/// Returns the body of a call without a token.
#[must_use]
pub fn unauthorized() -> Value {
    json!({ "errors": "[API] Invalid API key or access token (unrecognized login or wrong password)" })
}

/// Returns the body of a throttled REST call.
#[must_use]
pub fn rest_limited(per_s: u64) -> Value {
    let message = format!(
        "Exceeded {per_s} calls per second for api client. Reduce request rates to resume uninterrupted service."
    );
    json!({ "errors": message })
}

/// Returns the body when too many bulk operations are running.
#[must_use]
pub fn in_progress(kind: &str, running: &[String]) -> Value {
    let running = running.join(", ");
    let message = format!("A bulk {kind} operation for this app and shop is already in progress: {running}");
    user_error("OPERATION_IN_PROGRESS", &message)
}
