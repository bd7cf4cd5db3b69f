//! A call as it is going to be made: the request, what it is thought to cost, and whether it may be sent twice.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tidegate_upstream::{Body, HttpRequest, Method};

use super::error::{Error, Kind, Result};
use super::wire::Speech;
use crate::version::ApiVersion;

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) request: HttpRequest,
    pub(crate) speech: Speech,
    /// What it is thought to cost, in points; of no account for REST.
    pub(crate) points: u64,
    /// Whether sending it twice does no more than sending it once.
    pub(crate) may_repeat: bool,
}

impl Ask {
    /// A query or mutation.
    pub(crate) fn graphql(version: ApiVersion, query: &str, variables: &Value) -> Result<Self> {
        let body = if variables.is_null() {
            json!({ "query": query })
        } else {
            json!({ "query": query, "variables": variables })
        };
        let mut request = HttpRequest::new(Method::Post, format!("/admin/api/{version}/graphql.json"));
        request.body = Body::Json(raw(&body)?);
        let is_mutation = is_mutation(query);
        Ok(Self {
            request,
            speech: Speech::Graphql,
            points: if is_mutation { 10 } else { 50 },
            may_repeat: !is_mutation || query.contains("@idempotent"),
        })
    }

    /// A REST call. The path is below the version's, unless it starts with `/admin/`.
    pub(crate) fn rest(
        version: ApiVersion,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Self> {
        if path.split('?').next().unwrap_or_default().split('/').any(|part| part == "..") {
            return Err(Kind::Invalid("The path leads up with its .. segments.".into()).into());
        }
        let path = if path.starts_with("/admin/") {
            path.to_owned()
        } else {
            format!("/admin/api/{version}/{}", path.trim_start_matches('/'))
        };
        let mut request = HttpRequest::new(method, path);
        if let Some(body) = body {
            request.body = Body::Json(raw(body)?);
        }
        request.validate()?;
        Ok(Self { request, speech: Speech::Rest, points: 0, may_repeat: method.is_idempotent() })
    }
}

fn raw(json: &Value) -> Result<Box<RawValue>> {
    to_raw_value(json).map_err(|error| Error::caused(Kind::Invalid("The body is no JSON.".into()), error))
}

fn is_mutation(query: &str) -> bool {
    query.lines().any(|line| line.trim_start().starts_with("mutation"))
}
