//! The payload of a step: a request and its upstream as plain HTTP has them, and the deployment it
//! belongs to. A payload without a deployment was submitted by someone else, and is sent like any
//! other call.

use serde::{Deserialize, Serialize};
use tidegate_upstream::{Envelope, FieldRefusal, HttpRequest};

/// The stored payload of a step's operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Payload {
    /// The deployment, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deployment: Option<String>,
    /// The upstream, by name.
    pub(super) upstream: String,
    /// The request to send.
    pub(super) request: HttpRequest,
}

impl Payload {
    pub(super) fn encode(&self) -> Result<Vec<u8>, FieldRefusal> {
        serde_json::to_vec(self)
            .map_err(|_| FieldRefusal::new("request", "The request cannot be written as JSON."))
    }

    /// Decodes a payload; its contents are checked where it is sent.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, FieldRefusal> {
        serde_json::from_slice(bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            FieldRefusal::new(
                "request",
                format!("The step cannot be read, from line {line}, column {column} on."),
            )
        })
    }

    /// Encodes the payload for plain HTTP.
    pub(super) fn inner(&self) -> Result<Vec<u8>, FieldRefusal> {
        Envelope {
            upstream: self.upstream.clone(),
            request: self.request.clone(),
            proxied: None,
            completion: None,
        }
        .encode()
    }
}
