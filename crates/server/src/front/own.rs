//! What a node answers by itself: its figures, whether it is ready, what happens in its rooms, and who is there.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use maud::html;
use serde_json::{Value, json};
use tidegate::{Code, Error, Subscription};
use tidegate_cluster::View;
use tidegate_core::id::Partition;

use super::Front;
use crate::api::events::{self, EventFilter, Find};
use crate::edge::query::Query;
use crate::page;
use crate::telemetry;
use crate::wire::failure::Failure;
use crate::wire::time::At;

pub(super) async fn metrics(State(front): State<Arc<Front>>) -> Response {
    telemetry::refresh(&front.house, &front.rooms.engines()).await;
    let text = front.house.metrics.render();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Ready means that the store can be written, this node takes part, and the others reach it.
pub(super) async fn ready(State(front): State<Arc<Front>>) -> Response {
    if front.house.stopping.is_cancelled() {
        return Failure(Error::new(Code::Stopping, "The server is about to stop.")).into_response();
    }
    if let Err(error) = front.house.store.health().await {
        return Failure(error.into()).into_response();
    }
    let view = front.cluster.view();
    let is_known = view.joined && view.nodes.iter().any(|node| node.name == view.me);
    let trouble = match view.trouble {
        Some(why) if is_known => Some(format!("Something is wrong with this node's part: {why}.")),
        Some(why) => Some(format!("This node takes no part: {why}.")),
        None => (!is_known).then(|| "This node has not joined the others yet.".to_owned()),
    };
    if let Some(message) = trouble {
        return Failure(Error::new(Code::StoreUnavailable, message)).into_response();
    }
    Json(json!({ "status": "ready" })).into_response()
}

/// What happens in the rooms of this node, from now on. Whoever comes back is told to look again.
pub(super) async fn events(
    State(front): State<Arc<Front>>,
    headers: HeaderMap,
    mut query: Query,
) -> Response {
    let came_back = query.take("last_event_id").is_some() || headers.contains_key("last-event-id");
    let wanted = match EventFilter::read(&mut query).and_then(|wanted| query.finish().map(|()| wanted)) {
        Ok(wanted) => wanted,
        Err(error) => return Failure(error).into_response(),
    };
    let from = Subscription { missed: Vec::new(), gap: came_back, live: front.rooms.events() };
    let rooms = Arc::clone(&front.rooms);
    let find: Find =
        Arc::new(move |id| rooms.engines().into_iter().find(|engine| engine.partition() == id.partition()));
    events::respond(from, wanted, find, &front.house)
}

pub(super) async fn cluster(State(front): State<Arc<Front>>) -> Json<Value> {
    Json(show(&front.cluster.view()))
}

/// Nodes and partitions as they are told.
pub(crate) fn show(view: &View) -> Value {
    let owned = |name: &str| -> Vec<Partition> {
        view.owners.values().filter(|owner| owner.node == name).map(|owner| owner.partition).collect()
    };
    let nodes: Vec<Value> = view
        .nodes
        .iter()
        .map(|node| {
            json!({
                "name": node.name, "address": node.address, "until": At(node.until),
                "partitions": owned(&node.name),
            })
        })
        .collect();
    let partitions: Vec<Value> = view
        .partitions()
        .map(|one| {
            json!({ "partition": one.partition, "node": one.node, "epoch": one.epoch, "until": one.until.map(At) })
        })
        .collect();
    json!({ "node": view.me, "nodes": nodes, "partitions": partitions })
}

pub(super) async fn page(State(front): State<Arc<Front>>) -> Response {
    let view = front.cluster.view();
    let counts = front.rooms.counts().await.unwrap_or_default();
    let deployments = page::deployments::last(&front.house).await.unwrap_or_default();
    let content = html! {
        h1 { "Node " (view.me) }
        p { (counts.queued) " queued, " (counts.waiting) " waiting, " (counts.running) " running, " (counts.unknown) " unknown in the partitions of this node." }
        table {
            thead { tr { th { "Node" } th { "Address" } th { "Partitions" } } }
            tbody {
                @for node in &view.nodes {
                    tr {
                        td { (node.name) }
                        td { a href={ "http://" (node.address) "/" } { (node.address) } }
                        td {
                            @for owner in view.owners.values().filter(|owner| owner.node == node.name) {
                                (owner.partition) " "
                            }
                        }
                    }
                }
            }
        }
        section { (page::deployments::panel(&deployments, front.house.clock.now())) }
    };
    page::document("Cluster", false, &content).into_response()
}
