//! Events as JSON. The files in `schemas/` say the same, and a test compares the two.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::Time;
use tidegate_core::bounds::MODULE_LEN_MAX;
use tidegate_core::hydration::{
    AbsenceReason, CorrelationId, EntityKey, EntityKeyError, EntityStamp, HydrationMode, ModeError,
};

use super::members::Members;
use super::{
    EVENT_VERSION, EntityAbsence, EntityEvent, EntityQuestion, EntityUpdate, EventError, NOT_FOUND, UNKNOWN,
    UPDATED,
};

#[derive(Serialize)]
struct EnvelopeJson<P> {
    event: &'static str,
    schema_version: u64,
    tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    payload: P,
}

#[derive(Serialize)]
struct UnknownJson {
    entity_type: String,
    entity_id: String,
    requester_module: String,
    hydration_mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
}

#[derive(Serialize)]
struct UpdatedJson {
    entity_type: String,
    entity_id: String,
    source_module: String,
    data: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hydration_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
}

#[derive(Serialize)]
struct NotFoundJson {
    entity_type: String,
    entity_id: String,
    source_module: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
}

/// Reads an envelope; one that names no tenant is this one's.
pub(super) fn decode(bytes: &[u8], tenant: &str) -> Result<EntityEvent, EventError> {
    let mut envelope = Members::read(bytes)?;
    let event = envelope.text("event")?;
    let version = envelope.optional_number("schema_version")?.unwrap_or(EVENT_VERSION);
    if version != EVENT_VERSION {
        return Err(EventError::Version(version));
    }
    let tenant = envelope.optional_text("tenant")?.unwrap_or_else(|| tenant.to_owned());
    let correlation_id = envelope.optional_text("correlation_id")?;
    let correlation_id = correlation_id.map(|id| CorrelationId::new(&id)).transpose();
    let correlation_id = correlation_id.map_err(|error| name_error(&envelope, error))?;
    let payload = match event.as_str() {
        UNKNOWN | UPDATED | NOT_FOUND => envelope.payload()?,
        _ => return Err(EventError::Event(event.chars().take(64).collect())),
    };
    match (event.as_str(), correlation_id) {
        (UNKNOWN, None) => Err(envelope.refuse("correlation_id", "is missing")),
        (UNKNOWN, Some(correlation_id)) => read_unknown(payload, &tenant, correlation_id),
        (UPDATED, correlation_id) => read_updated(payload, &tenant, correlation_id),
        (_, correlation_id) => read_not_found(payload, &tenant, correlation_id),
    }
}

fn read_unknown(
    mut payload: Members,
    tenant: &str,
    correlation_id: CorrelationId,
) -> Result<EntityEvent, EventError> {
    let key = read_key(&mut payload, tenant)?;
    let requester_module = read_module(&mut payload, "requester_module")?;
    let (name, fields) = (payload.text("hydration_mode")?, payload.optional_texts("fields")?);
    let mode = HydrationMode::named(&name, fields).map_err(|error| mode_error(&payload, error))?;
    Ok(EntityEvent::Unknown(EntityQuestion { key, correlation_id, requester_module, mode }))
}

fn read_updated(
    mut payload: Members,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
) -> Result<EntityEvent, EventError> {
    let key = read_key(&mut payload, tenant)?;
    let source_module = read_module(&mut payload, "source_module")?;
    let data = payload.object("data")?;
    let stamp = read_stamp(&mut payload)?;
    let mode = match (payload.optional_text("hydration_mode")?, payload.optional_texts("fields")?) {
        (Some(name), fields) => {
            Some(HydrationMode::named(&name, fields).map_err(|error| mode_error(&payload, error))?)
        }
        (None, Some(_)) => return Err(payload.refuse("fields", "needs `hydration_mode`")),
        (None, None) => None,
    };
    Ok(EntityEvent::Updated(EntityUpdate { key, correlation_id, source_module, data, stamp, mode }))
}

fn read_not_found(
    mut payload: Members,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
) -> Result<EntityEvent, EventError> {
    let key = read_key(&mut payload, tenant)?;
    let source_module = read_module(&mut payload, "source_module")?;
    let reason = AbsenceReason::named(&payload.text("reason")?)
        .ok_or_else(|| payload.refuse("reason", "is not one of the known reasons"))?;
    let stamp = read_stamp(&mut payload)?;
    Ok(EntityEvent::NotFound(EntityAbsence { key, correlation_id, source_module, reason, stamp }))
}

fn read_key(payload: &mut Members, tenant: &str) -> Result<EntityKey, EventError> {
    let (entity_type, id) = (payload.text("entity_type")?, payload.text("entity_id")?);
    EntityKey::new(tenant, &entity_type, &id).map_err(|error| name_error(payload, error))
}

fn read_module(payload: &mut Members, part: &'static str) -> Result<String, EventError> {
    let name = payload.text(part)?;
    if name.is_empty() || name.len() > MODULE_LEN_MAX {
        return Err(name_error(payload, EntityKeyError { part, longest: MODULE_LEN_MAX }));
    }
    Ok(name)
}

/// A time is RFC 3339, or milliseconds since 1970.
fn read_stamp(payload: &mut Members) -> Result<EntityStamp, EventError> {
    let version = payload.optional_number("version")?;
    let as_of = match payload.optional("as_of") {
        None => None,
        Some(Value::String(text)) => Some(Time::parse_rfc_3339(&text)),
        Some(other) => Some(other.as_u64().map(Time::from_millis)),
    };
    let wrong = || payload.refuse("as_of", "must be an RFC 3339 time, or milliseconds since 1970");
    Ok(EntityStamp { version, as_of: as_of.map(|time| time.ok_or_else(wrong)).transpose()? })
}

/// The tenant is the envelope's, whatever was being read.
fn name_error(members: &Members, error: EntityKeyError) -> EventError {
    let problem = format!("must have 1 to {} bytes", error.longest);
    match error.part {
        "tenant" => EventError::Member { field: "tenant".to_owned(), problem: format!("`tenant` {problem}") },
        part => members.refuse(part, &problem),
    }
}

fn mode_error(payload: &Members, error: ModeError) -> EventError {
    let name = if error == ModeError::Unknown { "hydration_mode" } else { "fields" };
    payload.refuse(name, &format!("does not fit: {error}"))
}

pub(super) fn encode(event: &EntityEvent) -> Bytes {
    match event {
        EntityEvent::Unknown(question) => {
            let (hydration_mode, fields) = write_mode(&question.mode);
            let requester_module = question.requester_module.clone();
            let (entity_type, entity_id) = write_key(&question.key);
            write(event, UnknownJson { entity_type, entity_id, requester_module, hydration_mode, fields })
        }
        EntityEvent::Updated(update) => {
            let (hydration_mode, fields) = update.mode.as_ref().map(write_mode).unzip();
            let (entity_type, entity_id) = write_key(&update.key);
            let payload = UpdatedJson {
                entity_type,
                entity_id,
                source_module: update.source_module.clone(),
                data: update.data.clone(),
                version: update.stamp.version,
                as_of: update.stamp.as_of.map(|time| time.to_string()),
                hydration_mode,
                fields: fields.flatten(),
            };
            write(event, payload)
        }
        EntityEvent::NotFound(absence) => {
            let (entity_type, entity_id) = write_key(&absence.key);
            let payload = NotFoundJson {
                entity_type,
                entity_id,
                source_module: absence.source_module.clone(),
                reason: absence.reason.name().to_owned(),
                version: absence.stamp.version,
                as_of: absence.stamp.as_of.map(|time| time.to_string()),
            };
            write(event, payload)
        }
    }
}

fn write_key(key: &EntityKey) -> (String, String) {
    (key.entity_type().to_owned(), key.id().to_owned())
}

fn write_mode(mode: &HydrationMode) -> (String, Option<Vec<String>>) {
    (mode.name().to_owned(), mode.fields().map(|fields| fields.iter().cloned().collect()))
}

fn write<P: Serialize>(event: &EntityEvent, payload: P) -> Bytes {
    let envelope = EnvelopeJson {
        event: event.name(),
        schema_version: EVENT_VERSION,
        tenant: event.key().tenant().to_owned(),
        correlation_id: event.correlation_id().map(|id| id.as_str().to_owned()),
        payload,
    };
    // Only maps with keys that are not strings fail, and there are none.
    serde_json::to_vec(&envelope).map(Bytes::from).unwrap_or_default()
}
