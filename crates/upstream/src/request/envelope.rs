//! A request with the upstream it is for, as bytes and back: the payload of an operation. Nothing that was read is
//! handed on unchecked.

use serde::{Deserialize, Serialize};
use tidegate_core::bounds::PAYLOAD_LEN_MAX;

use super::{HttpRequest, ProxyInfo};
use crate::port::FieldRefusal;

/// A request and the upstream it goes to: the payload of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The upstream, by name.
    pub upstream: String,
    /// What is sent there.
    pub request: HttpRequest,
    /// That a client sent it through the proxy and waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<ProxyInfo>,
}

impl Envelope {
    /// As bytes.
    ///
    /// # Errors
    /// When it is larger than a payload may be.
    pub fn encode(&self) -> Result<Vec<u8>, FieldRefusal> {
        let bytes = serde_json::to_vec(self)
            .map_err(|_| FieldRefusal::new("request", "The request cannot be written as JSON."))?;
        check_len(&bytes)?;
        Ok(bytes)
    }

    /// Back from bytes, checked. Whether its headers may be stored is each upstream's to say.
    ///
    /// # Errors
    /// Names the field that cannot be taken.
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
        Ok(envelope)
    }
}

fn check_len(bytes: &[u8]) -> Result<(), FieldRefusal> {
    if bytes.len() <= PAYLOAD_LEN_MAX {
        return Ok(());
    }
    let message = format!("The request is {} bytes long; the most is {PAYLOAD_LEN_MAX}.", bytes.len());
    Err(FieldRefusal::new("request", message))
}

/// What serde says about a name is passed on; what it says about a value would repeat the value.
fn unreadable(error: &serde_json::Error) -> FieldRefusal {
    let said = error.to_string();
    let about_names = ["missing field", "unknown field", "duplicate field", "unknown variant"];
    let message = if about_names.iter().any(|start| said.starts_with(start)) {
        format!("The request cannot be read: {said}.")
    } else {
        let problem = if error.is_data() { "a field of another type was expected" } else { "it is not JSON" };
        let (line, column) = (error.line(), error.column());
        format!("The request cannot be read: {problem} at line {line} column {column}.")
    };
    FieldRefusal::new("request", message)
}
