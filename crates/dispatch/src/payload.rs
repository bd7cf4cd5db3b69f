//! The payload of a generation, as its operation stores it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_upstream::FieldRefusal;

/// What is to be generated, and for whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerationPayload {
    pub model: String,
    pub user: String,
    pub input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify_url: Option<String>,
}

impl GenerationPayload {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, FieldRefusal> {
        serde_json::from_slice(payload).map_err(|error| {
            FieldRefusal::new("payload", format!("It is not the payload of a generation: {error}."))
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        to_json(self)
    }
}

/// Writes a value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
