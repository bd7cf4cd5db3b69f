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

/// Everything that is wrong with an event, in the order in which it was found.
#[derive(Default)]
struct EventProblems(Vec<EventError>);

impl EventProblems {
    /// Returns the value, or keeps its error.
    fn check<T>(&mut self, read: Result<T, EventError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }
}

/// Reads an envelope; one that names no tenant is this one's. The errors are never empty.
pub(super) fn decode(bytes: &[u8], tenant: &str) -> Result<EntityEvent, Vec<EventError>> {
    let mut problems = EventProblems::default();
    let event = problems
        .check(Members::read(bytes))
        .and_then(|envelope| read_envelope(envelope, tenant, &mut problems));
    event.filter(|_| problems.0.is_empty()).ok_or(problems.0)
}

/// `None` only when there is a problem.
fn read_envelope(mut envelope: Members, tenant: &str, problems: &mut EventProblems) -> Option<EntityEvent> {
    let event = problems.check(envelope.text("event"));
    let version = problems.check(envelope.optional_number("schema_version")).flatten();
    if let Some(version) = version.filter(|version| *version != EVENT_VERSION) {
        // Nothing is known of the rest.
        problems.0.push(EventError::Version(version));
        return None;
    }
    let named = problems.check(envelope.optional_text("tenant")).flatten();
    let tenant = named.unwrap_or_else(|| tenant.to_owned());
    let correlation_id = problems.check(envelope.optional_text("correlation_id")).flatten();
    let correlation_id = correlation_id
        .and_then(|id| problems.check(CorrelationId::new(&id).map_err(|error| name_error(&envelope, error))));
    let event = event?;
    if ![UNKNOWN, UPDATED, NOT_FOUND].contains(&event.as_str()) {
        problems.0.push(EventError::Event(event.chars().take(64).collect()));
        return None;
    }
    if event == UNKNOWN && correlation_id.is_none() && problems.0.is_empty() {
        problems.0.push(envelope.refuse("correlation_id", "is missing"));
    }
    let payload = problems.check(envelope.payload())?;
    match event.as_str() {
        UNKNOWN => read_unknown(payload, &tenant, correlation_id, problems),
        UPDATED => read_updated(payload, &tenant, correlation_id, problems),
        _ => read_not_found(payload, &tenant, correlation_id, problems),
    }
}

fn read_unknown(
    mut payload: Members,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
    problems: &mut EventProblems,
) -> Option<EntityEvent> {
    let key = read_key(&mut payload, tenant, problems);
    let requester_module = problems.check(read_module(&mut payload, "requester_module"));
    let name = problems.check(payload.text("hydration_mode"));
    let fields = problems.check(payload.optional_texts("fields"));
    let mode = read_mode(&payload, &name?, fields?, problems)?;
    Some(EntityEvent::Unknown(EntityQuestion {
        key: key?,
        correlation_id: correlation_id?,
        requester_module: requester_module?,
        mode,
    }))
}

fn read_updated(
    mut payload: Members,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
    problems: &mut EventProblems,
) -> Option<EntityEvent> {
    let key = read_key(&mut payload, tenant, problems);
    let source_module = problems.check(read_module(&mut payload, "source_module"));
    let data = problems.check(payload.object("data"));
    let stamp = read_stamp(&mut payload, problems);
    let name = problems.check(payload.optional_text("hydration_mode"));
    let fields = problems.check(payload.optional_texts("fields"));
    let mode = match (name?, fields?) {
        (Some(name), fields) => Some(read_mode(&payload, &name, fields, problems)?),
        (None, Some(_)) => problems.check(Err(payload.refuse("fields", "needs `hydration_mode`")))?,
        (None, None) => None,
    };
    let (key, source_module, data, stamp) = (key?, source_module?, data?, stamp?);
    Some(EntityEvent::Updated(EntityUpdate { key, correlation_id, source_module, data, stamp, mode }))
}

fn read_not_found(
    mut payload: Members,
    tenant: &str,
    correlation_id: Option<CorrelationId>,
    problems: &mut EventProblems,
) -> Option<EntityEvent> {
    let key = read_key(&mut payload, tenant, problems);
    let source_module = problems.check(read_module(&mut payload, "source_module"));
    let reason = problems.check(payload.text("reason")).and_then(|reason| {
        let known = AbsenceReason::named(&reason);
        problems.check(known.ok_or_else(|| payload.refuse("reason", "is not one of the known reasons")))
    });
    let stamp = read_stamp(&mut payload, problems);
    let (key, source_module, reason, stamp) = (key?, source_module?, reason?, stamp?);
    Some(EntityEvent::NotFound(EntityAbsence { key, correlation_id, source_module, reason, stamp }))
}

fn read_mode(
    payload: &Members,
    name: &str,
    fields: Option<Vec<String>>,
    problems: &mut EventProblems,
) -> Option<HydrationMode> {
    problems.check(HydrationMode::named(name, fields).map_err(|error| mode_error(payload, error)))
}

fn read_key(payload: &mut Members, tenant: &str, problems: &mut EventProblems) -> Option<EntityKey> {
    let entity_type = problems.check(payload.text("entity_type"));
    let id = problems.check(payload.text("entity_id"));
    problems.check(EntityKey::new(tenant, &entity_type?, &id?).map_err(|error| name_error(payload, error)))
}

fn read_module(payload: &mut Members, part: &'static str) -> Result<String, EventError> {
    let name = payload.text(part)?;
    if name.is_empty() || name.len() > MODULE_LEN_MAX {
        return Err(name_error(payload, EntityKeyError { part, longest: MODULE_LEN_MAX }));
    }
    Ok(name)
}

/// A time is RFC 3339, or milliseconds since 1970.
fn read_stamp(payload: &mut Members, problems: &mut EventProblems) -> Option<EntityStamp> {
    let version = problems.check(payload.optional_number("version"));
    let as_of = match payload.optional("as_of") {
        None => None,
        Some(Value::String(text)) => Some(Time::parse_rfc_3339(&text)),
        Some(other) => Some(other.as_u64().map(Time::from_millis)),
    };
    let wrong = || payload.refuse("as_of", "must be an RFC 3339 time, or milliseconds since 1970");
    let as_of = problems.check(as_of.map(|time| time.ok_or_else(wrong)).transpose());
    Some(EntityStamp { version: version?, as_of: as_of? })
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
