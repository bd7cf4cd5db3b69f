//! Encodes a request together with its upstream as the payload of an operation, and decodes it.
//! Decoded data is always validated.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_core::bounds::PAYLOAD_LEN_MAX;

use super::completion::CompletionRules;
use super::{HttpRequest, ProxyInfo, body};
use crate::port::FieldRefusal;

/// A request and the upstream it goes to: the payload of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The name of the upstream.
    pub upstream: String,
    /// The request to send.
    pub request: HttpRequest,
    /// Set when a client sent it through the proxy and waits for the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<ProxyInfo>,
    /// Set when the request submits a job that ends elsewhere: how that is found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<RawValue>>,
}

impl Envelope {
    /// Addresses a request to the upstream of this name.
    #[must_use]
    pub fn new(upstream: impl Into<String>, request: HttpRequest) -> Self {
        Self { upstream: upstream.into(), request, proxied: None, completion: None }
    }

    /// Encodes the envelope.
    ///
    /// # Errors
    /// When it is larger than a payload may be.
    pub fn encode(&self) -> Result<Vec<u8>, FieldRefusal> {
        let bytes = serde_json::to_vec(self)
            .map_err(|_| FieldRefusal::new("request", "The request cannot be written as JSON."))?;
        check_len(&bytes)?;
        Ok(bytes)
    }

    /// Decodes and validates an envelope. Whether its headers may be stored is up to each upstream.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn decode(bytes: &[u8]) -> Result<Self, FieldRefusal> {
        check_len(bytes)?;
        let mut envelope: Self = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
        match &mut envelope.proxied {
            Some(proxied) => {
                envelope.request.validate_head()?;
                if let Some(body) = proxied.body()? {
                    envelope.request.body = body;
                }
            }
            None => envelope.request.validate_form()?,
        }
        envelope.completion_rules()?;
        Ok(envelope)
    }

    /// How the job that it submits ends, if it submits one.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn completion_rules(&self) -> Result<Option<CompletionRules>, FieldRefusal> {
        let rules = self.completion.as_ref();
        rules.map(|rules| CompletionRules::parse(rules.get(), &self.request)).transpose()
    }
}

fn check_len(bytes: &[u8]) -> Result<(), FieldRefusal> {
    if bytes.len() <= PAYLOAD_LEN_MAX {
        return Ok(());
    }
    let message = format!("The request is {} bytes long; the most is {PAYLOAD_LEN_MAX}.", bytes.len());
    Err(FieldRefusal::new("request", message))
}

/// Keeps what serde says about a name; what it says about a value would repeat the value.
fn unreadable(error: &serde_json::Error) -> FieldRefusal {
    let said = error.to_string();
    let about_names = ["missing field", "unknown field", "duplicate field", "unknown variant"];
    let message = if about_names.iter().any(|start| said.starts_with(start)) {
        format!("The request cannot be read: {said}.")
    } else {
        let problem = match error.is_data() {
            true if said.starts_with(body::NOT_UNICODE) => body::NOT_UNICODE,
            true => "a field of another type was expected",
            false => "it is not JSON",
        };
        let (line, column) = (error.line(), error.column());
        format!("The request cannot be read: {problem} at line {line} column {column}.")
    };
    FieldRefusal::new("request", message)
}
