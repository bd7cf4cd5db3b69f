//! The errors beside the data of a GraphQL answer, by their codes. Messages are Shopify's words about a query and may
//! repeat what is in it, so they are not kept.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::cost::parse_micro_points;

/// Most errors that are read of one answer.
const ERRORS_MAX: usize = 100;
/// Longest code that is passed on, in bytes.
const CODE_LEN_MAX: usize = 64;

/// What kind of error it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphqlErrorCode {
    /// The budget did not hold the cost; nothing ran.
    Throttled,
    /// One query asks for more than any query may.
    MaxCostExceeded,
    /// The credential may not do this.
    AccessDenied,
    /// The query cannot be run as it is.
    BadRequest,
    /// It went wrong at Shopify; whether a mutation ran is not said.
    InternalServerError,
    /// The same key is at work already.
    IdempotencyConcurrentRequest,
    /// The shop is closed, or is not there.
    ShopInactive,
    /// Another word.
    Other(String),
    /// No code: what a query that cannot be parsed or does not fit the schema gets.
    Missing,
}

impl GraphqlErrorCode {
    fn of(word: &str) -> Self {
        match word {
            "THROTTLED" => Self::Throttled,
            "MAX_COST_EXCEEDED" => Self::MaxCostExceeded,
            "ACCESS_DENIED" => Self::AccessDenied,
            "BAD_REQUEST" => Self::BadRequest,
            "INTERNAL_SERVER_ERROR" => Self::InternalServerError,
            "IDEMPOTENCY_CONCURRENT_REQUEST" => Self::IdempotencyConcurrentRequest,
            "SHOP_INACTIVE" => Self::ShopInactive,
            // A code is a word; anything else could be somebody's data.
            word if is_word(word) => Self::Other(word.to_owned()),
            _ => Self::Missing,
        }
    }

    /// As Shopify writes it; empty when it said none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Throttled => "THROTTLED",
            Self::MaxCostExceeded => "MAX_COST_EXCEEDED",
            Self::AccessDenied => "ACCESS_DENIED",
            Self::BadRequest => "BAD_REQUEST",
            Self::InternalServerError => "INTERNAL_SERVER_ERROR",
            Self::IdempotencyConcurrentRequest => "IDEMPOTENCY_CONCURRENT_REQUEST",
            Self::ShopInactive => "SHOP_INACTIVE",
            Self::Other(word) => word,
            Self::Missing => "",
        }
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphqlError {
    /// What kind it is.
    pub code: GraphqlErrorCode,
    /// What the query would have cost, in micro-points, where it was too much.
    pub cost: Option<u64>,
    /// The most that one query may cost, in micro-points, where it was too much.
    pub max_cost: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extensions<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_cost: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct GraphqlErrorBody<'a> {
    #[serde(borrow, default)]
    extensions: Option<&'a RawValue>,
}

/// From the JSON of `errors`: a list as GraphQL has it, or the sentence or object that stands there when the call was
/// turned away before GraphQL saw it.
pub(super) fn parse_errors(errors: &str) -> Vec<GraphqlError> {
    match serde_json::from_str::<Vec<&RawValue>>(errors) {
        Ok(list) => list.iter().take(ERRORS_MAX).map(|json| parse_error(json.get())).collect(),
        Err(_) if errors == "null" => Vec::new(),
        Err(_) => vec![GraphqlError { code: GraphqlErrorCode::Missing, cost: None, max_cost: None }],
    }
}

fn parse_error(error: &str) -> GraphqlError {
    let written: GraphqlErrorBody<'_> = serde_json::from_str(error).unwrap_or_default();
    let said: Extensions<'_> =
        written.extensions.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
    let word = said.code.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
    GraphqlError {
        code: word.map_or(GraphqlErrorCode::Missing, |word| GraphqlErrorCode::of(&word)),
        cost: parse_micro_points(said.cost),
        max_cost: parse_micro_points(said.max_cost),
    }
}

fn is_word(word: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=CODE_LEN_MAX).contains(&word.len()) && word.bytes().all(allowed)
}
