//! The overview of a node of a cluster: its nodes and their partitions, what this node does, and
//! the operations of all nodes that need an operator.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::deployments::{list_recent, panel};
use super::document;
use super::live::tick_stream;
use super::parts::{group, operation};
use crate::routing::{RoutingState, undecided};

/// The number of operations shown.
const SHOWN_MAX: usize = 50;

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
    let undecided = undecided(front, SHOWN_MAX).await;
    html! {
        h1 { "Node " (view.this_node) }
        section #counts data-live aria-label="Counts" {
            p { (counts.queued) " queued, " (counts.waiting) " waiting, " (counts.running) " running, " (counts.unknown) " unknown in the partitions of this node." }
        }
        section #unknown data-live aria-label="Unknown outcomes" { (unknown_outcomes(undecided)) }
        section #nodes data-live aria-label="Nodes" {
            table {
                thead { tr { th { "Node" } th { "Address" } th { "Partitions" } } }
                tbody {
                    @for node in &view.nodes {
                        tr {
                            td { (node.name) }
                            td { a href={ "http://" (node.record.address) "/" } { (node.record.address) } }
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

/// The operations that an operator has to decide; nothing when there are none.
fn unknown_outcomes(found: Option<(Vec<Value>, bool)>) -> Markup {
    let Some((operations, has_more)) = found else {
        return html! { p { "Unknown outcomes cannot be listed now: a partition does not answer." } };
    };
    html! {
        @if !operations.is_empty() {
            h2 { "Unknown outcomes" }
            table {
                thead { tr { th { "Operation" } th { "Group" } th { "Request" } th { "What is known" } } }
                tbody {
                    @for shown in &operations {
                        tr {
                            td {
                                @if let Some(id) = shown["id"].as_str().and_then(|id| id.parse().ok()) {
                                    (operation(id))
                                }
                            }
                            td { (group(word(&shown["group"]))) }
                            td { code { (word(&shown["request"]["method"])) " " (word(&shown["request"]["path"])) } }
                            td { (word(&shown["fault"]["message"])) }
                        }
                    }
                }
            }
            @if has_more { p { "There are more: " code { "tidegate op list --state unknown" } "." } }
        }
    }
}

/// A field as text; empty where there is none.
fn word(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}
