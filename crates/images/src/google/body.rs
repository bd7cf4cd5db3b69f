//! The bodies of Google's three methods, from one flat input. An input in Google's own shape
//! (`contents` or `instances`) is sent as it is.

use serde_json::{Map, Value, json};

use super::GoogleMethod;
use crate::request::{JobRequest, RequestError};

/// What belongs to an instance; everything else is a parameter.
const INSTANCE_FIELDS: [&str; 5] = ["prompt", "image", "lastFrame", "video", "referenceImages"];
/// What belongs next to the contents; everything else is in `generationConfig`.
const REQUEST_FIELDS: [&str; 2] = ["safetySettings", "systemInstruction"];

/// Builds the body of a submit.
pub(super) fn submit_body(method: GoogleMethod, job: &JobRequest<'_>) -> Result<Value, RequestError> {
    let input = job.input.as_object().ok_or_else(|| RequestError::input("input", "it must be an object"))?;
    let mut body = match method {
        GoogleMethod::GenerateContent => content(input)?,
        GoogleMethod::Predict | GoogleMethod::PredictLongRunning => prediction(input)?,
    };
    if let (GoogleMethod::PredictLongRunning, Some(webhook)) = (method, job.webhook) {
        body["webhookConfig"] = json!({ "uris": [webhook], "userMetadata": { "attempt": job.attempt } });
    }
    Ok(body)
}

fn prompt(input: &Map<String, Value>) -> Result<&str, RequestError> {
    let prompt = input.get("prompt").and_then(Value::as_str).filter(|prompt| !prompt.is_empty());
    prompt.ok_or_else(|| RequestError::input("prompt", "it is required"))
}

fn content(input: &Map<String, Value>) -> Result<Value, RequestError> {
    if input.contains_key("contents") {
        return Ok(input.clone().into());
    }
    let mut body = json!({
        "contents": [{ "parts": [{ "text": prompt(input)? }] }],
        "generationConfig": { "responseModalities": ["IMAGE"] },
    });
    for (name, value) in input.iter().filter(|(name, _)| *name != "prompt") {
        match (name.as_str(), value) {
            ("generationConfig", Value::Object(config)) => {
                for (name, value) in config {
                    body["generationConfig"][name] = value.clone();
                }
            }
            ("generationConfig", _) => {
                return Err(RequestError::input("generationConfig", "it must be an object"));
            }
            (name, value) if REQUEST_FIELDS.contains(&name) => body[name] = value.clone(),
            (name, value) => body["generationConfig"][name] = value.clone(),
        }
    }
    Ok(body)
}

fn prediction(input: &Map<String, Value>) -> Result<Value, RequestError> {
    if input.contains_key("instances") {
        return Ok(input.clone().into());
    }
    prompt(input)?;
    let (instance, parameters): (Map<_, _>, Map<_, _>) = input
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .partition(|(name, _)| INSTANCE_FIELDS.contains(&name.as_str()));
    let mut body = json!({ "instances": [instance] });
    if !parameters.is_empty() {
        body["parameters"] = parameters.into();
    }
    Ok(body)
}
