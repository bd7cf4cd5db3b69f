//! An incoming call, parsed before the state is locked: what it asks for, and what it costs.

use bytes::Bytes;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::address::ApiTarget;
use super::bodies;
use super::cost::{ReturnedShare, cost};
use super::document::Document;
use super::page::RestPage;
use super::shape::unsized_connection;
use super::version::{IdempotencyRule, Version};

/// A call.
#[derive(Debug)]
pub enum ShopifyCall {
    /// A GraphQL document and its requested cost.
    Graphql {
        /// The document.
        document: Document,
        /// The points that must be available.
        requested: u64,
    },
    /// A REST call.
    Rest {
        /// The HTTP method.
        method: Method,
        /// The resource: a path such as `products/1`.
        resource: String,
        /// The body.
        body: Value,
        /// The requested page of a list, where its length is given.
        page: Option<RestPage>,
    },
    /// A call that gets its response at once and costs nothing.
    Invalid(StatusCode, Value),
}

#[derive(Deserialize)]
struct Body {
    query: String,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    #[serde(default, rename = "operationName")]
    operation: Option<String>,
}

impl ShopifyCall {
    /// Parses a request.
    #[must_use]
    pub fn read(target: &ApiTarget, version: Version, request: &Request<Bytes>) -> Self {
        match target {
            ApiTarget::Rest(resource) => Self::Rest {
                method: request.method().clone(),
                resource: resource.clone(),
                body: serde_json::from_slice(request.body()).unwrap_or_default(),
                page: request.uri().query().and_then(RestPage::of),
            },
            ApiTarget::Graphql if request.method() == Method::POST => Self::graphql(version, request.body()),
            ApiTarget::Graphql => Self::Invalid(StatusCode::NOT_FOUND, json!({ "errors": "Not Found" })),
        }
    }

    fn graphql(version: Version, body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Body>(body) else {
            let wrong = json!({ "errors": {"query": "Required parameter missing or invalid"} });
            return Self::Invalid(StatusCode::BAD_REQUEST, wrong);
        };
        let variables = body.variables.unwrap_or_default();
        let document = match Document::parse(&body.query, body.operation.as_deref(), &variables) {
            Ok(document) => document,
            Err(message) => return Self::Invalid(StatusCode::OK, bodies::malformed(&message)),
        };
        if let Some(wrong) = wrong_directive(&document, version) {
            return Self::Invalid(StatusCode::OK, wrong);
        }
        if let Some(field) = unsized_connection(&document.selection) {
            let message = format!("you must provide one of first or last for `{}`", field.name);
            return Self::Invalid(StatusCode::OK, bodies::malformed(&message));
        }
        Self::Graphql { requested: cost(&document, ReturnedShare::ALL), document }
    }
}

fn wrong_directive(document: &Document, version: Version) -> Option<Value> {
    let known = |name: &str| match name {
        "skip" | "include" => true,
        "idempotent" => version.idempotency() != IdempotencyRule::Unknown,
        _ => false,
    };
    let mut all = document.directives.iter().chain(&document.on_operation);
    if let Some(unknown) = all.find(|name| !known(name)) {
        return Some(bodies::unknown_directive(unknown));
    }
    document.on_operation.first().map(|name| bodies::misplaced_directive(name))
}
