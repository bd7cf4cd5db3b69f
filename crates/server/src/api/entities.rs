//! Entities of other modules: asking, registering a source by URL, publishing events.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tidegate_bus::Delivery;
use tidegate_core::bounds::WAIT_MS_MAX;
use tidegate_core::hydration::check_entity_type;
use tidegate_hydration::{
    ASYNC_API, DEFAULT_TENANT, ENTITY_NOT_FOUND_SCHEMA, ENTITY_UNKNOWN_SCHEMA, ENTITY_UPDATED_SCHEMA,
    EntityEvent, EntityKey, FailureMode, GetOptions, HydratedEntity, Hydration, HydrationError,
    HydrationMode, MissReason,
};

use super::HandlerResult;
use crate::config::TokenScope;
use crate::edge::auth::{Caller, CallerTenant, has_scope, tenant_of};
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::hydration::SourceOrigin;
use crate::state::ServerState;
use crate::wire::field::Field;
use crate::wire::object::{Fields, read};
use crate::wire::problems::RequestProblems;
use crate::wire::time::Timestamp;

/// When a caller without an answer may try again, in seconds.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// What to do without an answer in time.
#[derive(Clone, Copy)]
enum OnMiss {
    FailFast,
    Defer,
    Degrade,
}

pub(super) async fn show(
    State(server): State<Arc<ServerState>>,
    Path((entity_type, id)): Path<(String, String)>,
    caller: Option<Extension<CallerTenant>>,
    mut query: Query,
) -> HandlerResult {
    let tenant = read_tenant(&mut query, caller.as_ref())?;
    let fields = query.take("fields").map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>());
    let default_mode = if fields.is_some() { "partial" } else { "full" };
    let mode = query.take("mode").unwrap_or_else(|| default_mode.to_owned());
    let mode = HydrationMode::named(&mode, fields)
        .map_err(|error| bad_parameter("mode", &format!("does not fit: {error}")))?;
    let wait = query.integer("wait_ms", 0..=WAIT_MS_MAX).map(Duration::from_millis);
    let max_age = query.integer("max_age_ms", 0..=u64::MAX / 1_000).map(Duration::from_millis);
    let on_miss = query.read("on_miss", read_on_miss).unwrap_or(OnMiss::FailFast);
    query.finish()?;
    let key = entity_key(&tenant, &entity_type, &id)?;
    let mut options = GetOptions { wait, max_age, ..GetOptions::of(mode) };
    let hydrator = &server.entities.hydrator;
    let outcome = match on_miss {
        OnMiss::Defer => hydrator.get_or_defer(&key, &options, |_| async {}).await,
        OnMiss::FailFast => hydrator.get(&key, &options).await,
        OnMiss::Degrade => {
            options.on_failure = FailureMode::Degrade;
            hydrator.get(&key, &options).await
        }
    };
    Ok(respond(&key, outcome))
}

/// Removes this server's copy, its version included: the next reader asks.
pub(super) async fn forget(
    State(server): State<Arc<ServerState>>,
    Path((entity_type, id)): Path<(String, String)>,
    caller: Option<Extension<CallerTenant>>,
    mut query: Query,
) -> HandlerResult {
    let tenant = read_tenant(&mut query, caller.as_ref())?;
    query.finish()?;
    let key = entity_key(&tenant, &entity_type, &id)?;
    let removed = server.entities.hydrator.forget(&key).await.map_err(|error| {
        Error::new(ErrorCode::StoreUnavailable, format!("The copy was not removed: {error}."))
            .with_source(error)
    })?;
    Ok(Json(json!({ "removed": removed })).into_response())
}

/// The tenant that a query names, or that of the caller's token, or the default one.
fn read_tenant(query: &mut Query, caller: Option<&Extension<CallerTenant>>) -> Result<String> {
    let tenant = tenant_of(query.take("tenant"), caller)?;
    Ok(tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned()))
}

fn read_on_miss(text: &str) -> Result<OnMiss> {
    match text {
        "fail-fast" => Ok(OnMiss::FailFast),
        "defer" => Ok(OnMiss::Defer),
        "degrade" => Ok(OnMiss::Degrade),
        _ => Err(bad_parameter("on_miss", "must be one of fail-fast, defer, degrade")),
    }
}

/// The key that a path and a query name.
fn entity_key(tenant: &str, entity_type: &str, id: &str) -> Result<EntityKey> {
    EntityKey::new(tenant, entity_type, id).map_err(|error| invalid(&error.to_string()).field(error.part))
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorCode::Invalid, format!("{problem}."))
}

#[derive(Serialize)]
struct EntityOut {
    entity_type: String,
    entity_id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_module: Option<String>,
    /// Whether the data is older, or less, than was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

fn respond(key: &EntityKey, outcome: std::result::Result<Hydration, HydrationError>) -> Response {
    let out = |state, reason| EntityOut {
        entity_type: key.entity_type().to_owned(),
        entity_id: key.id().to_owned(),
        state,
        data: None,
        version: None,
        as_of: None,
        source_module: None,
        stale: None,
        reason,
    };
    match outcome {
        Ok(Hydration::Found(entity)) => Json(found(out("found", None), &entity)).into_response(),
        Ok(Hydration::NotFound(absence)) => {
            let body = Json(out("not-found", Some(absence.reason.name())));
            (StatusCode::NOT_FOUND, body).into_response()
        }
        Ok(Hydration::Deferred) => (StatusCode::ACCEPTED, Json(out("deferred", None))).into_response(),
        Ok(Hydration::Unknown(reason)) | Err(HydrationError::Unavailable(reason)) => {
            unavailable(out("unavailable", Some(reason_name(reason))))
        }
        Err(HydrationError::Closed) => unavailable(out("unavailable", Some("stopping"))),
        Err(HydrationError::Owned(_) | HydrationError::Copies(_) | HydrationError::Bus(_)) => {
            unavailable(out("unavailable", Some("failed")))
        }
    }
}

fn found(mut out: EntityOut, entity: &HydratedEntity) -> EntityOut {
    out.data = Some(entity.data());
    out.version = entity.copy.state.stamp.version;
    out.as_of = entity.copy.state.stamp.as_of.map(Timestamp);
    out.source_module = Some(entity.copy.source_module.clone());
    out.stale = Some(entity.is_stale);
    out
}

fn unavailable(out: EntityOut) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, RETRY_AFTER_S)], Json(out)).into_response()
}

pub(super) const fn reason_name(reason: MissReason) -> &'static str {
    match reason {
        MissReason::TimedOut => "timeout",
        MissReason::SourceAbsent => "source-absent",
        MissReason::SourceFailed => "source-failed",
        MissReason::BusFailed => "bus-failed",
        MissReason::Refused(_) => "too-many",
    }
}

/// Publishes `entity/updated` or `entity/not-found`.
pub(super) async fn publish(
    State(server): State<Arc<ServerState>>,
    caller: Option<Extension<CallerTenant>>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let event = read_event(&body)?;
    tenant_of(Some(event.key().tenant().to_owned()), caller.as_ref())?;
    let delivery = server.entities.publish(&event).await?;
    let body = Json(json!({ "received": delivery != Delivery::NoSubscriber }));
    Ok((StatusCode::ACCEPTED, body).into_response())
}

/// Reads an answer; what is wrong with it is reported all at once.
fn read_event(body: &[u8]) -> Result<EntityEvent> {
    let mut problems = RequestProblems::default();
    let event = match EntityEvent::decode_all(body) {
        Ok(event) => event,
        Err(errors) => {
            for error in errors {
                let refusal = Error::new(ErrorCode::Malformed, format!("The event is refused: {error}."));
                problems.add(match error.field() {
                    Some(field) => refusal.field(field),
                    None => refusal,
                });
            }
            problems.finish()?;
            return Err(Error::new(ErrorCode::Malformed, "The event cannot be read."));
        }
    };
    if matches!(event, EntityEvent::Unknown(_)) {
        return Err(Error::new(ErrorCode::Invalid, "Only answers are published here.").field("event"));
    }
    Ok(event)
}

/// The schema of an event, or the AsyncAPI document of all of them.
pub(super) async fn schema(Path(name): Path<String>) -> HandlerResult {
    let text = match name.as_str() {
        "entity-unknown.schema.json" => ENTITY_UNKNOWN_SCHEMA,
        "entity-updated.schema.json" => ENTITY_UPDATED_SCHEMA,
        "entity-not-found.schema.json" => ENTITY_NOT_FOUND_SCHEMA,
        "asyncapi.json" => ASYNC_API,
        _ => return Err(Error::new(ErrorCode::NoRoute, "There is no such schema.").into()),
    };
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

fn source_out(entity_type: &str, origin: &SourceOrigin) -> Value {
    match origin {
        SourceOrigin::Url(url) => json!({ "entity_type": entity_type, "url": url }),
        SourceOrigin::Upstream { name, path } => {
            json!({ "entity_type": entity_type, "upstream": name, "path": path })
        }
    }
}

pub(super) async fn register(
    State(server): State<Arc<ServerState>>,
    Path(entity_type): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values: [url], mut problems } = read(&body, &["url"])?;
    let url = problems.check(Field { name: "url", raw: url }.required_text());
    problems.finish()?;
    check_type(&entity_type)?;
    server.entities.register(&entity_type, &url).await?;
    Ok(Json(source_out(&entity_type, &SourceOrigin::Url(url))).into_response())
}

fn check_type(entity_type: &str) -> Result<()> {
    check_entity_type(entity_type).map_err(|error| invalid(&error.to_string()).field("type"))
}

pub(super) async fn unregister(
    State(server): State<Arc<ServerState>>,
    Path(entity_type): Path<String>,
) -> HandlerResult {
    check_type(&entity_type)?;
    Ok(Json(json!({ "removed": server.entities.unregister(&entity_type)? })).into_response())
}

/// The sources; only those who may register one see the whole of its URL.
pub(super) async fn sources(
    State(server): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    let is_operator = has_scope(&server, &caller, TokenScope::Operate);
    let out = |(entity_type, origin): &(String, SourceOrigin)| match is_operator {
        true => source_out(entity_type, origin),
        false => source_out(entity_type, &origin.redacted()),
    };
    let sources: Vec<_> = server.entities.registered().iter().map(out).collect();
    Ok(Json(json!({ "sources": sources })).into_response())
}
