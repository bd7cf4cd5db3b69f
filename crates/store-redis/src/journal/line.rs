//! Lines of the journal as they are stored in Redis: steps and objects as JSON under kind and key,
//! a deployment as the fields of a hash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_core::Time;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, ObjectMapping, StepState,
};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::errors::unreadable;
use crate::scripts::ScriptCall;

#[derive(Serialize, Deserialize)]
struct StepLine<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    nth: u32,
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    fingerprint: Cow<'a, str>,
    #[serde(borrow)]
    state: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    foreign_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'a, str>>,
    at: u64,
}

#[derive(Serialize, Deserialize)]
struct ObjectLine<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    place: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fingerprint: Cow<'a, str>,
}

/// The field of a line.
pub(super) fn field(kind: &str, key: &str) -> Result<String> {
    to_json(&(kind, key))
}

/// Encodes a step.
pub(super) fn encode_step(step: &DeploymentStep) -> Result<String> {
    to_json(&StepLine {
        kind: Cow::Borrowed(&step.kind),
        key: Cow::Borrowed(&step.key),
        nth: step.nth,
        action: Cow::Borrowed(&step.action),
        fingerprint: Cow::Borrowed(&step.fingerprint),
        state: Cow::Borrowed(step.state.as_str()),
        operation: step.operation.as_deref().map(Cow::Borrowed),
        foreign_id: step.foreign_id.as_deref().map(Cow::Borrowed),
        note: step.note.as_deref().map(Cow::Borrowed),
        at: step.at.as_micros(),
    })
}

/// Encodes an object; empty for one that is removed.
pub(super) fn encode_mapped(mapped: &ObjectMapping) -> Result<String> {
    let Some(object) = &mapped.object else { return Ok(String::new()) };
    to_json(&ObjectLine {
        kind: Cow::Borrowed(&mapped.kind),
        key: Cow::Borrowed(&mapped.key),
        id: Cow::Borrowed(&object.id),
        place: object.place.as_deref().map(Cow::Borrowed),
        fingerprint: Cow::Borrowed(&object.fingerprint),
    })
}

/// Decodes a step.
pub(super) fn decode_step(line: &[u8]) -> Result<DeploymentStep> {
    let kept: StepLine<'_> = serde_json::from_slice(line).map_err(|_| unreadable_line("a step"))?;
    Ok(DeploymentStep {
        kind: word(&kept.kind),
        key: word(&kept.key),
        nth: kept.nth,
        action: word(&kept.action),
        fingerprint: word(&kept.fingerprint),
        state: StepState::parse(&kept.state).ok_or_else(|| unreadable_line("a step"))?,
        operation: kept.operation.as_deref().map(word),
        foreign_id: kept.foreign_id.as_deref().map(word),
        note: kept.note.as_deref().map(word),
        at: Time::from_micros(kept.at),
    })
}

/// Decodes an object.
pub(super) fn decode_mapped(line: &[u8]) -> Result<ObjectMapping> {
    let kept: ObjectLine<'_> = serde_json::from_slice(line).map_err(|_| unreadable_line("an object"))?;
    let object = ForeignObject {
        id: word(&kept.id),
        place: kept.place.as_deref().map(word),
        fingerprint: word(&kept.fingerprint),
    };
    Ok(ObjectMapping { kind: word(&kept.kind), key: word(&kept.key), object: Some(object) })
}

/// Adds the fields and values of a deployment as arguments.
pub(super) fn add_deployment_args(call: &mut ScriptCall<'_>, deployment: &Deployment) {
    call.arg("scope").arg(&*deployment.scope);
    call.arg("fence").arg(deployment.fence);
    call.arg("round").arg(deployment.round);
    call.arg("stage").arg(deployment.stage.as_str());
    call.arg("request").arg(&*deployment.request);
    call.arg("started_at").arg(deployment.started_at.as_micros());
    call.arg("updated_at").arg(deployment.updated_at.as_micros());
    if let Some(note) = &deployment.note {
        call.arg("note").arg(&**note);
    }
}

/// Decodes the deployment of a hash; `None` when the hash is empty.
pub(super) fn decode_deployment(
    id: &str,
    mut fields: HashMap<String, Vec<u8>>,
) -> Result<Option<Deployment>> {
    if fields.is_empty() {
        return Ok(None);
    }
    let wrong = || unreadable_line("a deployment");
    let text =
        |field: Option<Vec<u8>>| field.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong);
    let number = |field| text(field)?.parse::<u64>().map_err(|_| wrong());
    let round = number(fields.remove("round"))?;
    Ok(Some(Deployment {
        id: word(id),
        scope: text(fields.remove("scope"))?.into(),
        fence: number(fields.remove("fence"))?,
        round: u32::try_from(round).map_err(|_| wrong())?,
        stage: DeploymentStage::parse(&text(fields.remove("stage"))?).ok_or_else(wrong)?,
        request: fields.remove("request").ok_or_else(wrong)?.into(),
        note: fields.remove("note").map(|note| text(Some(note))).transpose()?.map(Arc::from),
        started_at: Time::from_micros(number(fields.remove("started_at"))?),
        updated_at: Time::from_micros(number(fields.remove("updated_at"))?),
    }))
}

fn word(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn to_json(line: &impl Serialize) -> Result<String> {
    let wrong = |cause| {
        Error::new(StoreErrorKind::Invalid, "a line of the journal cannot be written").with_source(cause)
    };
    serde_json::to_string(line).map_err(wrong)
}

fn unreadable_line(what: &str) -> Error {
    unreadable(format!("the journal in Redis holds {what} that this program did not write"))
}
