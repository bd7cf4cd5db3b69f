//! The overview of a node of a cluster: its nodes and their partitions, and what this node does.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::deployments::{list_recent, panel};
use super::document;
use super::live::tick_stream;
use crate::routing::RoutingState;

pub(crate) async fn show(State(front): State<Arc<RoutingState>>) -> Response {
    document("Cluster", true, &content(&front).await).into_response()
}

pub(crate) async fn regions(State(front): State<Arc<RoutingState>>) -> Response {
    content(&front).await.into_response()
}

pub(crate) async fn ticks(State(front): State<Arc<RoutingState>>) -> Response {
    tick_stream(front.partitions.events(), front.server.stopping.clone())
}

async fn content(front: &RoutingState) -> Markup {
    let view = front.cluster.view();
    let counts = front.partitions.counts().await.unwrap_or_default();
    let deployments = list_recent(&front.server).await.unwrap_or_default();
    html! {
        h1 { "Node " (view.this_node) }
        section #counts data-live aria-label="Counts" {
            p { (counts.queued) " queued, " (counts.waiting) " waiting, " (counts.running) " running, " (counts.unknown) " unknown in the partitions of this node." }
        }
        section #nodes data-live aria-label="Nodes" {
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
        }
        section #deployments data-live { (panel(&deployments, front.server.clock.now())) }
    }
}
