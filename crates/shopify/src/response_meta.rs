//! What a response of Shopify reports besides its data: cost and budget, errors by their codes,
//! calls used, the version that responded. It only reads and decides nothing; nonsensical values
//! count as absent.

mod calls;
mod cost;
mod errors;

use std::collections::HashMap;

use http::HeaderMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate_core::AttemptEnd;

pub use calls::CallLimit;
pub use cost::QueryCost;
pub use errors::{GraphqlError, GraphqlErrorCode};

use crate::version::ApiVersion;

/// The REST header with the calls used: `32/40`.
pub const CALL_LIMIT: &str = "x-shopify-shop-api-call-limit";
/// The header with the version that responded.
pub const API_VERSION: &str = "x-shopify-api-version";
/// The header with the reason why a call is deprecated.
pub const DEPRECATED: &str = "x-shopify-api-deprecated-reason";
/// Longest reason that is passed on, in characters.
const REASON_LEN_MAX: usize = 300;

/// [`GraphqlOutcome::Broken`], as the status that says the same.
pub(crate) const INTERNAL_ERROR: AttemptEnd =
    AttemptEnd::Answered { status: 500, is_complete: true, asks_to_wait: false };
/// [`GraphqlOutcome::Unreadable`] is like a response that is incomplete.
pub(crate) const UNREADABLE: AttemptEnd =
    AttemptEnd::Answered { status: 200, is_complete: false, asks_to_wait: false };

/// Everything that a response reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The cost and what is left, in a GraphQL response.
    pub cost: QueryCost,
    /// The errors next to the data, in a GraphQL response.
    pub errors: Vec<GraphqlError>,
    /// Whether it has data: a top-level field that is not null. Errors next to data leave what
    /// worked as it is.
    pub has_data: bool,
    /// Whether `data` is an object at all: fields that are all null are a response too, where no
    /// error says why.
    pub has_fields: bool,
    /// Whether `userErrors` have a code that says to send the same request again, which the caller
    /// does not need to see.
    pub still_running: bool,
    /// The calls used, in a REST response.
    pub calls: Option<CallLimit>,
    /// The version that responded.
    pub version: Option<ApiVersion>,
    /// Why this call is deprecated.
    pub deprecated: Option<String>,
}

/// The meaning of a 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphqlOutcome<'a> {
    /// A request with the same key is still running.
    StillRunning,
    /// There is data, and maybe errors next to it, which leave what worked as it is.
    Done,
    /// The call has to be sent later.
    Throttled,
    /// Shopify failed; a change may have been made.
    Broken,
    /// The call is refused, with this as the first reason.
    Refused(&'a GraphqlError),
    /// It asks for more than the budget ever holds, in micro-points: waiting is pointless.
    TooCostly {
        /// The cost it asks for.
        cost: u64,
        /// The capacity of the budget.
        most: u64,
    },
    /// Neither data nor errors, or no JSON at all: it is unknown whether the call took effect.
    Unreadable,
}

/// The top level of a GraphQL response. The data is skipped, not parsed.
#[derive(Default, Deserialize)]
struct ResponseEnvelope<'a> {
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    errors: Option<&'a RawValue>,
    #[serde(borrow, default)]
    extensions: Option<&'a RawValue>,
}

/// The code of a `userErrors` entry for a request whose first attempt is still running.
const STILL_RUNNING: &[u8] = b"\"IDEMPOTENCY_CONCURRENT_REQUEST\"";

impl ResponseMeta {
    /// Parses the headers. Enough for REST.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            calls: text(CALL_LIMIT).and_then(CallLimit::parse),
            version: text(API_VERSION).and_then(|version| version.trim().parse().ok()),
            deprecated: text(DEPRECATED).map(|reason| reason.chars().take(REASON_LEN_MAX).collect()),
            ..Self::default()
        }
    }

    /// Parses the headers and the body of a GraphQL response. A body that is not JSON reports
    /// nothing.
    #[must_use]
    pub fn from_graphql(headers: &HeaderMap, body: &[u8]) -> Self {
        let top: ResponseEnvelope<'_> = serde_json::from_slice(body).unwrap_or_default();
        Self {
            cost: top.extensions.map(|json| cost::parse_cost(json.get())).unwrap_or_default(),
            errors: top.errors.map(|json| errors::parse_errors(json.get())).unwrap_or_default(),
            has_fields: top.data.is_some_and(|data| data.get().starts_with('{')),
            has_data: top.data.is_some_and(|data| has_non_null(data.get())),
            still_running: top.data.is_some_and(|data| {
                let data = data.get().as_bytes();
                data.windows(STILL_RUNNING.len()).any(|part| part == STILL_RUNNING)
            }),
            ..Self::from_headers(headers)
        }
    }

    /// Decides what a 200 means: the only place that does, for the queue and for the client.
    #[must_use]
    pub fn graphql_outcome(&self) -> GraphqlOutcome<'_> {
        if self.still_running || self.error(&GraphqlErrorCode::IdempotencyConcurrentRequest).is_some() {
            return GraphqlOutcome::StillRunning;
        }
        if self.has_data {
            return GraphqlOutcome::Done;
        }
        if self.error(&GraphqlErrorCode::Throttled).is_some() {
            return match (self.cost.requested, self.cost.maximum) {
                (Some(cost), Some(most)) if cost > most => GraphqlOutcome::TooCostly { cost, most },
                _ => GraphqlOutcome::Throttled,
            };
        }
        if self.error(&GraphqlErrorCode::InternalServerError).is_some() {
            return GraphqlOutcome::Broken;
        }
        match self.errors.first() {
            Some(error) => GraphqlOutcome::Refused(error),
            None if self.has_fields => GraphqlOutcome::Done,
            None => GraphqlOutcome::Unreadable,
        }
    }

    /// Returns the first error with this code.
    #[must_use]
    pub fn error(&self, code: &GraphqlErrorCode) -> Option<&GraphqlError> {
        self.errors.iter().find(|error| error.code == *code)
    }

    /// Returns the version that responded instead of the requested one.
    #[must_use]
    pub fn fell_forward(&self, asked: Option<ApiVersion>) -> Option<ApiVersion> {
        self.version.filter(|version| asked.is_some_and(|asked| asked != *version))
    }
}

/// Returns whether an object has anything but nulls.
fn has_non_null(data: &str) -> bool {
    let fields = serde_json::from_str::<HashMap<String, Option<IgnoredAny>>>(data);
    fields.is_ok_and(|fields| fields.values().any(Option::is_some))
}

#[cfg(test)]
mod tests;
