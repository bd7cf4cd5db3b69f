//! The open flights, for operators: what is asked, by which node, who waits and until when. A node
//! of a cluster gathers them from all nodes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_hydration::{EntityKey, FlightView, MissReason, WaiterKind, WaiterView};

use super::HandlerResult;
use super::entities::reason_name;
use crate::edge::auth::CallerTenant;
use crate::edge::query::Query;
use crate::error::Result;
use crate::state::{ServerState, SharedPartition};
use crate::wire::cursor;
use crate::wire::time::Timestamp;

/// The list that its cursors belong to.
const LIST: &str = "flights";

/// A page of flights.
#[derive(Serialize)]
pub(crate) struct FlightsOut {
    flights: Vec<Value>,
    next_cursor: Option<String>,
    /// Nodes that did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreachable: Vec<String>,
}

/// The flights of one node, behind the cursor of a page.
#[derive(Serialize, Deserialize)]
pub(crate) struct NodeFlights {
    flights: Vec<Value>,
    /// Whether the node has more of them.
    is_more: bool,
}

/// The page that is asked for.
pub(crate) struct FlightsPage {
    limit: usize,
    after: Option<EntityKey>,
}

#[derive(Serialize)]
struct FlightOut<'a> {
    /// The node that asks.
    node: &'a str,
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

/// Lists the flights of a server that is alone.
pub(super) async fn list(
    State(app): State<SharedPartition>,
    caller: Option<Extension<CallerTenant>>,
    query: Query,
) -> HandlerResult {
    let page = FlightsPage::read(query)?;
    let owners = app.server.store.partition_owners().await.map_err(tidegate::Error::from)?;
    let node = owners.first().map(|owner| owner.node.as_str()).unwrap_or_default();
    let own = page.of_node(&app.server, node);
    Ok(Json(page.merge(vec![own], caller.as_ref(), Vec::new())).into_response())
}

impl FlightsPage {
    /// Reads which page is asked for.
    pub(crate) fn read(mut query: Query) -> Result<Self> {
        let limit = query.limit();
        let after = query.read("cursor", read_cursor);
        query.finish()?;
        Ok(Self { limit, after })
    }

    /// Returns the flights of this node, at most a page of them.
    pub(crate) fn of_node(&self, server: &Arc<ServerState>, node: &str) -> NodeFlights {
        let mut flights = server.entities.hydrator.flights(self.after.as_ref(), self.limit + 1);
        let is_more = flights.len() > self.limit;
        flights.truncate(self.limit);
        let flights = flights.into_iter().map(|flight| FlightOut::new(node, flight));
        NodeFlights {
            flights: flights.filter_map(|flight| serde_json::to_value(flight).ok()).collect(),
            is_more,
        }
    }

    /// Merges the flights of several nodes, by entity. A tenant's token sees its own only; such a
    /// page may be short, and still have a cursor.
    pub(crate) fn merge(
        &self,
        parts: Vec<NodeFlights>,
        caller: Option<&Extension<CallerTenant>>,
        unreachable: Vec<String>,
    ) -> FlightsOut {
        let mut is_more = parts.iter().any(|part| part.is_more);
        let flights = parts.into_iter().flat_map(|part| part.flights);
        let mut flights: Vec<_> = flights.filter_map(|flight| Some((key_of(&flight)?, flight))).collect();
        flights.sort_by(|(a, _), (b, _)| a.cmp(b));
        let end = page_end(&flights, self.limit);
        is_more |= end < flights.len();
        flights.truncate(end);
        let next_cursor = flights.last().filter(|_| is_more).map(|(key, _)| write_cursor(key));
        let is_visible =
            |key: &EntityKey| caller.is_none_or(|Extension(CallerTenant(tenant))| key.tenant() == &**tenant);
        let flights = flights.into_iter().filter(|(key, _)| is_visible(key)).map(|(_, flight)| flight);
        FlightsOut { flights: flights.collect(), next_cursor, unreachable }
    }
}

/// Returns where a page ends. The flights of several nodes for one entity stay on one page, because
/// a cursor is an entity; only a page of them alone is longer than asked for.
fn page_end(flights: &[(EntityKey, Value)], limit: usize) -> usize {
    if flights.len() <= limit {
        return flights.len();
    }
    let cut = &flights[limit].0;
    let before = flights[..limit].iter().take_while(|(key, _)| key != cut).count();
    if before > 0 { before } else { flights.iter().take_while(|(key, _)| key == cut).count() }
}

/// The entity of a flight.
fn key_of(flight: &Value) -> Option<EntityKey> {
    let text = |name: &str| flight[name].as_str();
    EntityKey::new(text("tenant")?, text("entity_type")?, text("entity_id")?).ok()
}

impl<'a> FlightOut<'a> {
    fn new(node: &'a str, flight: FlightView) -> Self {
        Self {
            node,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(node: &str, entities: &[&str], is_more: bool) -> NodeFlights {
        let flight = |id: &&str| json!({ "node": node, "tenant": "t", "entity_type": "a", "entity_id": id });
        NodeFlights { flights: entities.iter().map(flight).collect(), is_more }
    }

    fn page(limit: usize, parts: Vec<NodeFlights>) -> (Vec<String>, bool) {
        let page = FlightsPage { limit, after: None }.merge(parts, None, Vec::new());
        let name = |flight: &Value| {
            format!("{}{}", flight["entity_id"].as_str().unwrap(), flight["node"].as_str().unwrap())
        };
        (page.flights.iter().map(name).collect(), page.next_cursor.is_some())
    }

    /// HYD-15: the flights of all nodes are one list, and no page loses one.
    #[test]
    fn hyd_15_flights_of_nodes_are_one_list() {
        let nodes = || vec![part("A", &["1", "3", "4"], false), part("B", &["2", "3"], false)];
        let all = ["1A", "2B", "3A", "3B", "4A"].map(str::to_owned).to_vec();
        assert_eq!(page(5, nodes()), (all.clone(), false));
        // Both flights of one entity are on one page.
        assert_eq!(page(4, nodes()), (all[..4].to_vec(), true));
        assert_eq!(page(3, nodes()), (all[..2].to_vec(), true));
        let same = || vec![part("A", &["3"], false), part("B", &["3"], false)];
        assert_eq!(page(1, same()), (all[2..4].to_vec(), false));
        // A node that has more says so.
        assert_eq!(
            page(2, vec![part("A", &["1", "3"], true)]),
            (vec!["1A".to_owned(), "3A".to_owned()], true)
        );
        let one = FlightsPage { limit: 9, after: None };
        let tenant = Extension(CallerTenant("other".into()));
        assert!(one.merge(nodes(), Some(&tenant), Vec::new()).flights.is_empty());
    }
}
