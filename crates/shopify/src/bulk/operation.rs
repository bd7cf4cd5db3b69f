//! A bulk operation as Shopify reports it. The URL of a result grants access to whoever has it, so
//! it is never printed.

use std::fmt;

use serde_json::Value;

/// The prefix of a bulk operation's id.
const ID: &str = "gid://shopify/BulkOperation/";

/// The URL of a bulk operation's result, valid for seven days.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultUrl(String);

/// The status of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are Shopify's words")]
#[non_exhaustive]
pub enum BulkStatus {
    Created,
    Running,
    Completed,
    Canceling,
    Canceled,
    Failed,
    Expired,
    /// A status that is not known here.
    Other(String),
}

/// A bulk operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkOperation {
    /// Its id: `gid://shopify/BulkOperation/…`.
    pub id: String,
    /// Its status.
    pub status: BulkStatus,
    /// Why it failed, as Shopify's code.
    pub error_code: Option<String>,
    /// Objects so far, or in all.
    pub objects: u64,
    /// The objects without a parent.
    pub root_objects: u64,
    /// The size of the result, in bytes.
    pub file_size: Option<u64>,
    /// The URL of the result; none when there is no result.
    pub url: Option<ResultUrl>,
    /// The URL of the partial result of a failed operation.
    pub partial: Option<ResultUrl>,
    /// The document it runs.
    pub(crate) query: Option<String>,
}

/// A bulk operation that has completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletedBulk {
    /// Its id.
    pub id: String,
    /// Objects in all.
    pub objects: u64,
    /// The objects without a parent.
    pub root_objects: u64,
    /// The size of the result, in bytes.
    pub file_size: Option<u64>,
    /// The URL of the result; none when it is empty.
    pub url: Option<ResultUrl>,
}

impl BulkStatus {
    fn of(word: &str) -> Self {
        match word {
            "CREATED" => Self::Created,
            "RUNNING" => Self::Running,
            "COMPLETED" => Self::Completed,
            "CANCELING" => Self::Canceling,
            "CANCELED" => Self::Canceled,
            "FAILED" => Self::Failed,
            "EXPIRED" => Self::Expired,
            word => Self::Other(word.chars().take(32).collect()),
        }
    }

    /// Returns the status as Shopify writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Canceling => "CANCELING",
            Self::Canceled => "CANCELED",
            Self::Failed => "FAILED",
            Self::Expired => "EXPIRED",
            Self::Other(word) => word,
        }
    }

    /// Returns whether it takes a slot at Shopify. A status that is not known here is assumed to.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Canceling | Self::Other(_))
    }

    /// Returns whether it is in progress and no one has canceled it.
    pub(crate) const fn can_be_canceled(&self) -> bool {
        self.is_under_way() && !matches!(self, Self::Canceling)
    }
}

impl BulkOperation {
    #[cfg(test)]
    pub(crate) fn new(id: &str, status: &BulkStatus) -> Self {
        Self::from_json(&serde_json::json!({ "id": id, "status": status.as_str() })).unwrap()
    }

    /// Parses JSON; `None` when it is not a bulk operation.
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id: text("id").filter(|id| is_id(id))?,
            status: BulkStatus::of(json.get("status").and_then(Value::as_str)?),
            error_code: text("errorCode"),
            objects: json.get("objectCount").and_then(count).unwrap_or(0),
            root_objects: json.get("rootObjectCount").and_then(count).unwrap_or(0),
            file_size: json.get("fileSize").and_then(count),
            url: text("url").map(ResultUrl),
            partial: text("partialDataUrl").map(ResultUrl),
            query: text("query"),
        })
    }
}

/// Parses a count; large numbers are sent as strings.
fn count(json: &Value) -> Option<u64> {
    json.as_u64().or_else(|| json.as_str()?.parse().ok())
}

pub(crate) fn is_id(text: &str) -> bool {
    text.strip_prefix(ID)
        .is_some_and(|number| (1..=32).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the ids of bulk operations in a sentence.
pub(crate) fn ids_in(sentence: &str) -> Vec<String> {
    let ends = |c: char| c == ',' || c.is_whitespace();
    let ids = sentence.split(ends).map(|word| word.trim_end_matches('.')).filter(|word| is_id(word));
    ids.map(str::to_owned).collect()
}

impl ResultUrl {
    /// Creates a result URL, as the receiver of a webhook or the queue has it.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// Returns the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ResultUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResultUrl(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-29: the "busy" message names the operations that are running.
    #[test]
    fn lim_29_running_ids_are_read_from_the_sentence() {
        let sentence = "A bulk query operation for this app and shop is already in progress: gid://shopify/BulkOperation/7, gid://shopify/BulkOperation/81.";
        assert_eq!(ids_in(sentence), ["gid://shopify/BulkOperation/7", "gid://shopify/BulkOperation/81"]);
        assert!(ids_in("gid://shopify/Product/7 gid://shopify/BulkOperation/x").is_empty());
    }

    /// OPS-22: a URL that grants access to a result is in no log.
    #[test]
    fn ops_22_the_url_of_a_result_never_prints() {
        let json = serde_json::json!({ "id": "gid://shopify/BulkOperation/7", "status": "FAILED", "objectCount": "12",
            "rootObjectCount": 3, "fileSize": null, "partialDataUrl": "https://x/?sig=hunter2", "errorCode": "TIMEOUT" });
        let operation = BulkOperation::from_json(&json).unwrap();
        assert_eq!((operation.objects, operation.root_objects, operation.file_size), (12, 3, None));
        assert_eq!(operation.partial.as_ref().unwrap().as_str(), "https://x/?sig=hunter2");
        assert!(!format!("{operation:?}").contains("hunter2"));
        assert!(
            BulkOperation::from_json(&serde_json::json!({ "id": "gid://shopify/Product/7", "status": "X" }))
                .is_none()
        );
    }
}
