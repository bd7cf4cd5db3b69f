//! The routes that each node serves by itself: metrics, readiness, and the cluster status.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate_cluster::ClusterView;
use tidegate_core::id::Partition;

use super::RoutingState;
use crate::error::{Error, ErrorCode};
use crate::telemetry;
use crate::wire::error::ApiError;
use crate::wire::time::Timestamp;

pub(crate) async fn metrics(State(routing): State<Arc<RoutingState>>) -> Response {
    telemetry::refresh(&routing.server, &routing.partitions.engines()).await;
    let text = routing.server.metrics.render();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Ready means that the store is writable, this node has joined, and the others can reach it.
pub(crate) async fn ready(State(routing): State<Arc<RoutingState>>) -> Response {
    if routing.server.stopping.is_cancelled() {
        return ApiError(Error::new(ErrorCode::Stopping, "The server is shutting down.")).into_response();
    }
    if let Err(error) = routing.server.store.health().await {
        return ApiError(error.into()).into_response();
    }
    let view = routing.cluster.view();
    let is_known = view.joined && view.nodes.iter().any(|node| node.name == view.this_node);
    let trouble = match view.problem {
        Some(why) if is_known => Some(format!("Something is wrong with this node's part: {why}.")),
        Some(why) => Some(format!("This node takes no part: {why}.")),
        None => (!is_known).then(|| "This node has not joined the others yet.".to_owned()),
    };
    if let Some(message) = trouble {
        return ApiError(Error::new(ErrorCode::StoreUnavailable, message)).into_response();
    }
    Json(json!({ "status": "ready" })).into_response()
}

pub(crate) async fn cluster(State(routing): State<Arc<RoutingState>>) -> Json<Value> {
    Json(cluster_view_json(&routing.cluster.view()))
}

/// Nodes and partitions as JSON.
pub(crate) fn cluster_view_json(view: &ClusterView) -> Value {
    let owned = |name: &str| -> Vec<Partition> {
        view.owners.values().filter(|owner| owner.node == name).map(|owner| owner.partition).collect()
    };
    let nodes: Vec<Value> = view
        .nodes
        .iter()
        .map(|node| {
            json!({
                "name": node.name, "address": node.record.address, "until": Timestamp(node.until),
                "partitions": owned(&node.name),
            })
        })
        .collect();
    let partitions: Vec<Value> = view
        .partitions()
        .map(|one| {
            json!({ "partition": one.partition, "node": one.node, "epoch": one.epoch, "until": one.until.map(Timestamp) })
        })
        .collect();
    json!({ "node": view.this_node, "nodes": nodes, "partitions": partitions })
}
