//! Events as JSON. The files in `schemas/` say the same, and a test compares the two.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tidegate_core::Time;
use tidegate_core::bounds::MODULE_LEN_MAX;
use tidegate_core::hydration::{
    AbsenceReason, CorrelationId, EntityKey, EntityKeyError, EntityStamp, HydrationMode,
};

use super::{
    DEFAULT_TENANT, EVENT_VERSION, EntityAbsence, EntityEvent, EntityQuestion, EntityUpdate, EventError,
    NOT_FOUND, UNKNOWN, UPDATED,
};

#[derive(Deserialize, Serialize)]
struct EnvelopeJson<P> {
    event: String,
    #[serde(default = "first_version")]
    schema_version: u32,
    #[serde(default = "default_tenant")]
    tenant: String,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    payload: P,
}

#[derive(Deserialize, Serialize)]
struct UnknownJson {
    entity_type: String,
    entity_id: String,
    requester_module: String,
    hydration_mode: String,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
}

#[derive(Deserialize, Serialize)]
struct UpdatedJson {
    entity_type: String,
    entity_id: String,
    source_module: String,
    data: Map<String, Value>,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    as_of: Option<TimeJson>,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    hydration_mode: Option<String>,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
}

#[derive(Deserialize, Serialize)]
struct NotFoundJson {
    entity_type: String,
    entity_id: String,
    source_module: String,
    reason: String,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    as_of: Option<TimeJson>,
}

/// A time as RFC 3339; milliseconds since 1970 are read too.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum TimeJson {
    Text(String),
    Millis(u64),
}

/// A member that is there has a value.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

const fn first_version() -> u32 {
    1
}

fn default_tenant() -> String {
    DEFAULT_TENANT.to_owned()
}

fn malformed(error: &serde_json::Error) -> EventError {
    EventError::Malformed(error.to_string())
}

pub(super) fn decode(bytes: &[u8]) -> Result<EntityEvent, EventError> {
    let envelope: EnvelopeJson<Value> = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
    if envelope.schema_version != EVENT_VERSION {
        return Err(EventError::Version(envelope.schema_version));
    }
    let EnvelopeJson { event, tenant, correlation_id, payload, .. } = envelope;
    let correlation_id = correlation_id.map(|id| CorrelationId::new(&id)).transpose()?;
    match event.as_str() {
        UNKNOWN => {
            let missing = || EventError::Malformed("missing field `correlation_id`".to_owned());
            read_unknown(payload, &tenant, correlation_id.ok_or_else(missing)?)
        }
        UPDATED => read_updated(payload, &tenant, correlation_id),
        NOT_FOUND => read_not_found(payload, &tenant, correlation_id),
        _ => Err(EventError::Event(event.chars().take(64).collect())),
    }
}

fn read_unknown(
    payload: Value,
    tenant: &str,
    correlation_id: CorrelationId,
) -> Result<EntityEvent, EventError> {
    let payload: UnknownJson = serde_json::from_value(payload).map_err(|error| malformed(&error))?;
    Ok(EntityEvent::Unknown(EntityQuestion {
        key: EntityKey::new(tenant, &payload.entity_type, &payload.entity_id)?,
        correlation_id,
        requester_module: checked_module("requester_module", payload.requester_module)?,
        mode: HydrationMode::named(&payload.hydration_mode, payload.fields)?,
    }))
}

fn read_updated(
    payload: Value,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
) -> Result<EntityEvent, EventError> {
    let payload: UpdatedJson = serde_json::from_value(payload).map_err(|error| malformed(&error))?;
    let mode = match (payload.hydration_mode, payload.fields) {
        (Some(name), fields) => Some(HydrationMode::named(&name, fields)?),
        (None, Some(_)) => return Err(EventError::Malformed("`fields` without `hydration_mode`".to_owned())),
        (None, None) => None,
    };
    Ok(EntityEvent::Updated(EntityUpdate {
        key: EntityKey::new(tenant, &payload.entity_type, &payload.entity_id)?,
        correlation_id,
        source_module: checked_module("source_module", payload.source_module)?,
        data: payload.data,
        stamp: read_stamp(payload.version, payload.as_of)?,
        mode,
    }))
}

fn read_not_found(
    payload: Value,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
) -> Result<EntityEvent, EventError> {
    let payload: NotFoundJson = serde_json::from_value(payload).map_err(|error| malformed(&error))?;
    let reason = AbsenceReason::named(&payload.reason)
        .ok_or_else(|| EventError::Malformed("`reason` is not one of the known reasons".to_owned()))?;
    Ok(EntityEvent::NotFound(EntityAbsence {
        key: EntityKey::new(tenant, &payload.entity_type, &payload.entity_id)?,
        correlation_id,
        source_module: checked_module("source_module", payload.source_module)?,
        reason,
        stamp: read_stamp(payload.version, payload.as_of)?,
    }))
}

fn checked_module(part: &'static str, name: String) -> Result<String, EventError> {
    if name.is_empty() || name.len() > MODULE_LEN_MAX {
        return Err(EntityKeyError { part, longest: MODULE_LEN_MAX }.into());
    }
    Ok(name)
}

fn read_stamp(version: Option<u64>, as_of: Option<TimeJson>) -> Result<EntityStamp, EventError> {
    let as_of = match as_of {
        None => None,
        Some(TimeJson::Millis(millis)) => Some(Time::from_millis(millis)),
        Some(TimeJson::Text(text)) => {
            let invalid = || EventError::Malformed("`as_of` is not an RFC 3339 time".to_owned());
            Some(Time::parse_rfc_3339(&text).ok_or_else(invalid)?)
        }
    };
    Ok(EntityStamp { version, as_of })
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
                as_of: update.stamp.as_of.map(write_time),
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
                as_of: absence.stamp.as_of.map(write_time),
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

fn write_time(time: Time) -> TimeJson {
    TimeJson::Text(time.to_string())
}

fn write<P: Serialize>(event: &EntityEvent, payload: P) -> Bytes {
    let envelope = EnvelopeJson {
        event: event.name().to_owned(),
        schema_version: EVENT_VERSION,
        tenant: event.key().tenant().to_owned(),
        correlation_id: event.correlation_id().map(|id| id.as_str().to_owned()),
        payload,
    };
    // Only maps with keys that are not strings fail, and there are none.
    serde_json::to_vec(&envelope).map(Bytes::from).unwrap_or_default()
}
