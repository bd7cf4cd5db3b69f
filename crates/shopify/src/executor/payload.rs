//! The payload of an operation of kind `shopify.bulk`: `{"upstream":…,"request":{"query":…}}`, or a
//! `mutation` with its `staged_upload_path`.

use serde::Deserialize;
use tidegate_upstream::FieldRefusal;

use crate::bulk::Job;
use crate::version::ApiVersion;

/// A parsed payload.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) upstream: String,
    request: Request,
    pub(super) api_version: Option<ApiVersion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    upstream: String,
    request: Request,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    mutation: Option<String>,
    #[serde(default)]
    staged_upload_path: Option<String>,
    #[serde(default)]
    api_version: Option<String>,
}

impl Payload {
    pub(super) fn decode(payload: &[u8]) -> Result<Self, FieldRefusal> {
        let told = |error: serde_json::Error| {
            let said = error.to_string();
            // Serde's messages about names are passed on; those about values would repeat the
            // value.
            let about_names = ["missing field", "unknown field", "duplicate field"];
            let about = if about_names.iter().any(|start| said.starts_with(start)) {
                said
            } else {
                "a text was expected".into()
            };
            FieldRefusal::new("request.query", format!("The request cannot be read: {about}."))
        };
        let Envelope { upstream, request } = serde_json::from_slice(payload).map_err(told)?;
        let version = |text: &String| {
            text.parse().map_err(|error: crate::version::InvalidApiVersion| {
                FieldRefusal::new("request.api_version", error.to_string())
            })
        };
        let api_version = request.api_version.as_ref().map(version).transpose()?;
        Ok(Self { upstream, request, api_version })
    }

    /// Returns the job to run.
    pub(super) fn job(&self) -> Result<Job, FieldRefusal> {
        let Request { query, mutation, staged_upload_path, .. } = &self.request;
        let (field, job) = match (query, mutation, staged_upload_path) {
            (Some(query), None, None) => ("request.query", Job::query(query)),
            (None, Some(mutation), Some(path)) => ("request.mutation", Job::mutation(mutation, path)),
            (None, Some(_), None) => {
                let message = "A bulk mutation needs the path of its uploaded file.";
                return Err(FieldRefusal::new("request.staged_upload_path", message));
            }
            _ => {
                let message = "A bulk operation is a query, or a mutation with its staged_upload_path.";
                return Err(FieldRefusal::new("request.query", message));
            }
        };
        job.check().map_err(|error| FieldRefusal::new(field, error.to_string()))?;
        Ok(job)
    }
}

impl std::fmt::Debug for Request {
    /// Prints what it is, never its content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.mutation.is_some() { "mutation" } else { "query" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(request: &str) -> FieldRefusal {
        let payload = format!(r#"{{"upstream":"acme","request":{request}}}"#);
        Payload::decode(payload.as_bytes()).and_then(|payload| payload.job()).unwrap_err()
    }

    #[test]
    fn mistakes_are_told_by_field_and_without_what_was_sent() {
        for (request, field) in [
            ("{}", "request.query"),
            (r#"{"query":7}"#, "request.query"),
            (r#"{"query":""}"#, "request.query"),
            (r#"{"query":"{ a }","mutation":"hunter2"}"#, "request.query"),
            (r#"{"mutation":"hunter2"}"#, "request.staged_upload_path"),
            (r#"{"mutation":"hunter2","staged_upload_path":" "}"#, "request.mutation"),
            (r#"{"query":"{ a }","api_version":"hunter2"}"#, "request.api_version"),
            (r#"{"query":{"hunter2":1}}"#, "request.query"),
        ] {
            let refusal = refused(request);
            assert_eq!(refusal.field, field, "{request}");
            assert!(!refusal.message.contains("hunter2"), "{}", refusal.message);
        }
    }
}
