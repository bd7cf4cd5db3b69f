//! The open flights of this node, for operators: what is asked, who waits and until when.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_hydration::{EntityKey, FlightView, MissReason, WaiterKind, WaiterView};

use super::HandlerResult;
use super::entities::reason_name;
use crate::edge::auth::CallerTenant;
use crate::edge::query::Query;
use crate::error::Result;
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::time::Timestamp;

/// The list that its cursors belong to.
const LIST: &str = "flights";

#[derive(Serialize)]
struct FlightsOut {
    flights: Vec<FlightOut>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct FlightOut {
    tenant: String,
    entity_type: String,
    entity_id: String,
    hydration_mode: &'static str,
    opened_at: Timestamp,
    until: Timestamp,
    /// How many questions were published.
    questions: u32,
    unanswered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    waiting: usize,
    deferred: usize,
    waiters: Vec<WaiterOut>,
}

#[derive(Serialize)]
struct WaiterOut {
    correlation_id: String,
    hydration_mode: &'static str,
    until: Timestamp,
    deferred: bool,
}

pub(super) async fn list(
    State(server): State<Arc<ServerState>>,
    caller: Option<Extension<CallerTenant>>,
    mut query: Query,
) -> HandlerResult {
    let limit = query.limit();
    let after = query.read("cursor", read_cursor);
    query.finish()?;
    let mut flights = server.entities.hydrator.flights(after.as_ref(), limit + 1);
    let is_more = flights.len() > limit;
    flights.truncate(limit);
    let last = flights.last().filter(|_| is_more);
    let next_cursor = last.map(|last| write_cursor(&last.key));
    // A page of a tenant's token may be short, and still have a cursor.
    let is_visible = |flight: &FlightView| match &caller {
        Some(Extension(CallerTenant(tenant))) => flight.key.tenant() == &**tenant,
        None => true,
    };
    let flights = flights.into_iter().filter(is_visible).map(FlightOut::from).collect();
    Ok(Json(FlightsOut { flights, next_cursor }).into_response())
}

impl From<FlightView> for FlightOut {
    fn from(flight: FlightView) -> Self {
        Self {
            tenant: flight.key.tenant().to_owned(),
            entity_type: flight.key.entity_type().to_owned(),
            entity_id: flight.key.id().to_owned(),
            hydration_mode: flight.mode.name(),
            opened_at: Timestamp(flight.opened),
            until: Timestamp(flight.until),
            questions: flight.questions,
            unanswered: flight.failure.is_some(),
            reason: flight.failure.map(|failure| reason_name(MissReason::from(failure))),
            waiting: flight.waiting,
            deferred: flight.deferred,
            waiters: flight.waiters.into_iter().map(WaiterOut::from).collect(),
        }
    }
}

impl From<WaiterView> for WaiterOut {
    fn from(waiter: WaiterView) -> Self {
        Self {
            correlation_id: waiter.correlation_id.as_str().to_owned(),
            hydration_mode: waiter.mode.name(),
            until: Timestamp(waiter.until),
            deferred: waiter.kind == WaiterKind::Deferred,
        }
    }
}

/// The cursor behind a flight: its entity.
fn write_cursor(key: &EntityKey) -> String {
    let parts = serde_json::json!([key.tenant(), key.entity_type(), key.id()]);
    cursor::write_text(&parts.to_string(), LIST)
}

fn read_cursor(text: &str) -> Result<EntityKey> {
    let parts = cursor::read_text(text, LIST)?;
    let [tenant, entity_type, id]: [String; 3] =
        serde_json::from_str(&parts).map_err(|_| cursor::bad_cursor())?;
    EntityKey::new(&tenant, &entity_type, &id).map_err(|_| cursor::bad_cursor())
}
