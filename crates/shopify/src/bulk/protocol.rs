//! The requests about bulk operations and the meaning of their responses. Older versions support
//! fewer of them.

use serde_json::{Value, json};

use super::job::{Job, JobMatch};
use super::operation::{BulkOperation, BulkStatus, ids_in};
use crate::client::Shopify;
use crate::client::error::{Error, Result, ShopifyErrorKind};
use crate::version::ApiVersion;

/// The first version that finds bulk operations by search and by id, and refuses them with a code.
const SEARCHABLE_SINCE: ApiVersion = ApiVersion::Quarter { year: 2026, month: 1 };
/// How many of the newest operations are searched.
const SEARCH_LIMIT: u32 = 10;
/// The requested fields of an operation.
const FIELDS: &str = "id status errorCode objectCount rootObjectCount fileSize url partialDataUrl";

/// The result of searching for a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobSearchResult {
    /// This operation is the job.
    Match(String),
    /// This operation may be the job.
    Possible(String),
    /// No operation resembles it.
    None,
}

/// Starts a job; returns its id.
pub(super) async fn start(client: &Shopify, job: &Job) -> Result<String> {
    let errors = if client.version() >= SEARCHABLE_SINCE { "field message code" } else { "field message" };
    let shape = format!("{{ bulkOperation {{ id status }} userErrors {{ {errors} }} }}");
    let (name, query, variables) = match &job.staged_upload_path {
        None => (
            "bulkOperationRunQuery",
            format!("mutation($query: String!) {{ bulkOperationRunQuery(query: $query) {shape} }}"),
            json!({ "query": job.text }),
        ),
        Some(path) => (
            "bulkOperationRunMutation",
            format!(
                "mutation($mutation: String!, $path: String!) {{ bulkOperationRunMutation(mutation: $mutation, stagedUploadPath: $path) {shape} }}"
            ),
            json!({ "mutation": job.text, "path": path }),
        ),
    };
    let answer = client.graphql(&query, variables).await?;
    let started = parse_started(&answer.data[name])?;
    Ok(started.id)
}

/// Fetches the state of an operation.
pub(super) async fn fetch_operation(client: &Shopify, id: &str) -> Result<BulkOperation> {
    let query = if client.version() >= SEARCHABLE_SINCE {
        format!("query($id: ID!) {{ bulkOperation(id: $id) {{ {FIELDS} }} }}")
    } else {
        format!("query($id: ID!) {{ node(id: $id) {{ ... on BulkOperation {{ {FIELDS} }} }} }}")
    };
    let answer = client.graphql(&query, json!({ "id": id })).await?;
    let told = answer.data.get("bulkOperation").or_else(|| answer.data.get("node"));
    told.and_then(BulkOperation::from_json).ok_or_else(|| ShopifyErrorKind::Gone(id.to_owned()).into())
}

/// Asks Shopify to cancel an operation.
pub(super) async fn cancel(client: &Shopify, id: &str) -> Result<BulkOperation> {
    let query = format!(
        "mutation($id: ID!) {{ bulkOperationCancel(id: $id) {{ bulkOperation {{ {FIELDS} }} userErrors {{ field message }} }} }}"
    );
    let answer = client.graphql(&query, json!({ "id": id })).await?;
    parse_started(&answer.data["bulkOperationCancel"])
}

/// Searches for a job among the newest operations. An operation in progress matches; for mutations
/// also one that has completed, and where an attempt's outcome is unknown (`is_repeated`) one that
/// ended in any way: it is not run again blindly.
pub(super) async fn find(client: &Shopify, job: &Job, is_repeated: bool) -> Result<JobSearchResult> {
    let counts = |operation: &BulkOperation| {
        operation.status.is_under_way()
            || job.is_mutation() && (is_repeated || operation.status == BulkStatus::Completed)
    };
    let mut found = JobSearchResult::None;
    for operation in newest_operations(client, job).await?.into_iter().filter(counts) {
        match job.match_operation(&operation) {
            JobMatch::Same => return Ok(JobSearchResult::Match(operation.id)),
            JobMatch::Unmarked if found == JobSearchResult::None => {
                found = JobSearchResult::Possible(operation.id);
            }
            JobMatch::Unmarked | JobMatch::Other => {}
        }
    }
    Ok(found)
}

async fn newest_operations(client: &Shopify, job: &Job) -> Result<Vec<BulkOperation>> {
    let kind = if job.is_mutation() { "mutation" } else { "query" };
    if client.version() >= SEARCHABLE_SINCE {
        let query = format!(
            "query($search: String!) {{ bulkOperations(first: {SEARCH_LIMIT}, query: $search) {{ nodes {{ {FIELDS} query }} }} }}"
        );
        let answer = client.graphql(&query, json!({ "search": format!("operation_type:{kind}") })).await?;
        let nodes = answer.data.pointer("/bulkOperations/nodes").and_then(Value::as_array);
        return Ok(nodes.into_iter().flatten().filter_map(BulkOperation::from_json).collect());
    }
    let query =
        format!("query {{ currentBulkOperation(type: {}) {{ {FIELDS} query }} }}", kind.to_uppercase());
    let answer = client.graphql(&query, Value::Null).await?;
    Ok(answer.data.get("currentBulkOperation").and_then(BulkOperation::from_json).into_iter().collect())
}

/// Returns the operation in the response to a mutation, or why there is none.
fn parse_started(payload: &Value) -> Result<BulkOperation> {
    if let Some(operation) = payload.get("bulkOperation").and_then(BulkOperation::from_json) {
        return Ok(operation);
    }
    let errors = payload.get("userErrors").cloned().unwrap_or_default();
    let each = || errors.as_array().into_iter().flatten();
    let text =
        |error: &Value, name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_busy = |error: &&Value| {
        text(error, "code") == "OPERATION_IN_PROGRESS"
            || text(error, "message").contains("already in progress")
    };
    if let Some(busy) = each().find(is_busy) {
        return Err(ShopifyErrorKind::Busy { running: ids_in(&text(busy, "message")) }.into());
    }
    let codes: Vec<_> = each().map(|error| text(error, "code")).filter(|code| !code.is_empty()).collect();
    if each().next().is_none() {
        // The response reports success, but not what was started.
        return Err(Error::new(ShopifyErrorKind::Unknown("The answer names no bulk operation.".into())));
    }
    Err(ShopifyErrorKind::UserErrors { codes, errors: Box::new(errors) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-29: "busy" is recognized with or without a code, with the ids that are running.
    #[test]
    fn lim_29_in_progress_is_busy() {
        let message = "A bulk query operation for this app and shop is already in progress: gid://shopify/BulkOperation/9";
        for code in [json!("OPERATION_IN_PROGRESS"), Value::Null] {
            let payload = json!({ "bulkOperation": null, "userErrors": [{ "field": null, "message": message, "code": code }] });
            let error = parse_started(&payload).unwrap_err();
            let busy = ShopifyErrorKind::Busy { running: vec!["gid://shopify/BulkOperation/9".into()] };
            assert_eq!((error.kind(), error.is_retryable()), (&busy, true));
        }
        let payload = json!({ "userErrors": [{ "message": "hunter2", "code": "NO_SUCH_FILE" }] });
        let error = parse_started(&payload).unwrap_err();
        assert_eq!(error.to_string(), "Shopify refused it with userErrors: NO_SUCH_FILE.");
        assert!(!format!("{error:?}").contains("hunter2"));
        assert!(parse_started(&json!({ "bulkOperation": null, "userErrors": [] })).unwrap_err().is_unknown());
    }
}
