//! The errors next to the data of a GraphQL response, by their codes. Messages are Shopify's words
//! about a query and may repeat what is in it, so they are not kept.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::cost::parse_micro_points;

/// Most errors read per response.
const ERRORS_MAX: usize = 100;
/// Longest code that is passed on, in bytes.
const CODE_LEN_MAX: usize = 64;

/// The code of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphqlErrorCode {
    /// The budget did not hold the cost; nothing ran.
    Throttled,
    /// One query asks for more than any query may.
    MaxCostExceeded,
    /// The credential lacks the permission.
    AccessDenied,
    /// The query cannot run as it is.
    BadRequest,
    /// Shopify failed; it does not say whether a mutation ran.
    InternalServerError,
    /// A request with the same key is still running.
    IdempotencyConcurrentRequest,
    /// The shop is closed, or does not exist.
    ShopInactive,
    /// Another code.
    Other(String),
    /// No code: for a query that cannot be parsed or does not fit the schema.
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
            // A code is a word; anything else could be someone's data.
            word if is_word(word) => Self::Other(word.to_owned()),
            _ => Self::Missing,
        }
    }

    /// Returns the code as Shopify writes it; empty when there is none.
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
    /// Its code.
    pub code: GraphqlErrorCode,
    /// The cost of a query that was too expensive, in micro-points.
    pub cost: Option<u64>,
    /// The most that one query may cost, in micro-points, when it was too expensive.
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

/// Parses the JSON of `errors`: a list as GraphQL has it, or the sentence or object that is there
/// when the call was refused before GraphQL saw it.
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
