//! The open flights of all nodes: each is asked for its own, and the answers are one list.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use tidegate_store::nodes::Node;

use super::RoutingState;
use crate::api::flights::{FlightsPage, NodeFlights};
use crate::edge::auth::CallerTenant;
use crate::edge::query::Query;
use crate::wire::error::ApiError;

/// Where a node returns its own flights to the others.
pub(crate) const PATH: &str = "/internal/flights";
/// How long another node may take. One that is slower is named as unreachable.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Lists the flights of all nodes.
pub(crate) async fn list(
    State(routing): State<Arc<RoutingState>>,
    uri: Uri,
    caller: Option<Extension<CallerTenant>>,
    query: Query,
) -> Response {
    let page = match FlightsPage::read(query) {
        Ok(page) => page,
        Err(error) => return ApiError(error).into_response(),
    };
    let view = routing.cluster.view();
    let target = uri.query().map_or_else(|| PATH.to_owned(), |query| format!("{PATH}?{query}"));
    let is_other = |node: &&Node| node.name != view.this_node && !node.record.address.is_empty();
    let asked = view.nodes.iter().filter(is_other).map(|node| ask(&routing, node, &target));
    let mut parts = vec![page.of_node(&routing.server, &view.this_node)];
    let mut unreachable = Vec::new();
    for answer in join_all(asked).await {
        match answer {
            Ok(flights) => parts.push(flights),
            Err(name) => unreachable.push(name),
        }
    }
    Json(page.merge(parts, caller.as_ref(), unreachable)).into_response()
}

/// Returns the flights of this node to another one.
pub(crate) async fn of_this_node(State(routing): State<Arc<RoutingState>>, query: Query) -> Response {
    match FlightsPage::read(query) {
        Ok(page) => Json(page.of_node(&routing.server, &routing.cluster.view().this_node)).into_response(),
        Err(error) => ApiError(error).into_response(),
    }
}

/// Asks a node for its flights; returns its name if it does not answer.
async fn ask(routing: &RoutingState, node: &Node, target: &str) -> Result<NodeFlights, String> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, routing.peers.ask(&node.record.address, target)).await;
    let body = match answer {
        Ok(Some((StatusCode::OK, body))) => Some(body),
        _ => None,
    };
    body.and_then(|body| serde_json::from_slice(&body).ok()).ok_or_else(|| node.name.clone())
}
