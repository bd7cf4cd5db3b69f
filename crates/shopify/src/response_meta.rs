//! What an answer of Shopify says besides its data: cost and budget, errors by their codes, calls used, the version
//! that answered. It reads and judges nothing; what makes no sense counts as not said.

mod calls;
mod cost;
mod errors;

use std::collections::HashMap;

use http::HeaderMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub use calls::CallLimit;
pub use cost::QueryCost;
pub use errors::{GraphqlError, GraphqlErrorCode};

use crate::version::ApiVersion;

/// The header in which REST tells the calls used: `32/40`.
pub const CALL_LIMIT: &str = "x-shopify-shop-api-call-limit";
/// The header that tells which version answered.
pub const API_VERSION: &str = "x-shopify-api-version";
/// The header that tells why a call will stop working.
pub const DEPRECATED: &str = "x-shopify-api-deprecated-reason";
/// Longest reason that is passed on, in characters.
const REASON_LEN_MAX: usize = 300;

/// All that an answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// What it cost and what is left, in a GraphQL answer.
    pub cost: QueryCost,
    /// The errors beside the data, in a GraphQL answer.
    pub errors: Vec<GraphqlError>,
    /// Whether it has data: a field at the top that is not null. Errors beside data leave what worked as it is.
    pub has_data: bool,
    /// Whether `data` is an object at all: fields that are all null are an answer too, where no error says why.
    pub has_fields: bool,
    /// The codes of `userErrors` that say to send the same again, which is not for the caller to see.
    pub still_running: bool,
    /// The calls used, in a REST answer.
    pub calls: Option<CallLimit>,
    /// The version that answered.
    pub version: Option<ApiVersion>,
    /// Why this call will stop working.
    pub deprecated: Option<String>,
}

/// What a 200 means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphqlOutcome<'a> {
    /// The same key is at work already.
    StillRunning,
    /// There is data, and maybe errors beside it, which leave what worked as it is.
    Done,
    /// To be sent later.
    Throttled,
    /// Something broke at Shopify; a change may have been made.
    Broken,
    /// It will not be done, for this reason first of all.
    Refused(&'a GraphqlError),
    /// It asks for more than the budget ever holds, in micro-points: waiting brings nothing.
    TooCostly {
        /// What it asks for.
        cost: u64,
        /// What the budget holds at most.
        most: u64,
    },
    /// Neither data nor errors, or no JSON at all: whether it was done is not said.
    Unreadable,
}

/// The top of a GraphQL answer. The data is passed over, not read.
#[derive(Default, Deserialize)]
struct ResponseEnvelope<'a> {
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    errors: Option<&'a RawValue>,
    #[serde(borrow, default)]
    extensions: Option<&'a RawValue>,
}

/// The code of a `userErrors` entry for a request whose first sending is still at work.
const STILL_RUNNING: &[u8] = b"\"IDEMPOTENCY_CONCURRENT_REQUEST\"";

impl ResponseMeta {
    /// What the headers say. Enough for REST.
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

    /// What the body of a GraphQL answer says, besides its headers. A body that is no JSON says nothing.
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

    /// What a 200 means: the one place where that is decided, for the queue and for the client.
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

    /// The first error with this code.
    #[must_use]
    pub fn error(&self, code: &GraphqlErrorCode) -> Option<&GraphqlError> {
        self.errors.iter().find(|error| error.code == *code)
    }

    /// The version that answered instead of the one that was asked for.
    #[must_use]
    pub fn fell_forward(&self, asked: Option<ApiVersion>) -> Option<ApiVersion> {
        self.version.filter(|version| asked.is_some_and(|asked| asked != *version))
    }
}

/// Whether an object holds anything but nulls.
fn has_non_null(data: &str) -> bool {
    let fields = serde_json::from_str::<HashMap<String, Option<IgnoredAny>>>(data);
    fields.is_ok_and(|fields| fields.values().any(Option::is_some))
}

#[cfg(test)]
mod tests;
