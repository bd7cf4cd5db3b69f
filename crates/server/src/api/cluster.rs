//! The cluster status of a single server: one node and its one partition, in the same format as a
//! cluster's.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use tidegate_cluster::ClusterView;

use super::HandlerResult;
use crate::routing::show_view;
use crate::state::SharedPartition;

pub(super) async fn show_single_node(State(app): State<SharedPartition>) -> HandlerResult {
    let owners = app.server.store.partition_owners().await.map_err(tidegate::Error::from)?;
    let me = owners.first().map(|owner| owner.node.clone()).unwrap_or_default();
    let owners: BTreeMap<_, _> = owners.into_iter().map(|owner| (owner.partition, owner)).collect();
    let view = ClusterView {
        this_node: me,
        partitions: 1,
        joined: true,
        owners,
        local_partitions: vec![0],
        ..ClusterView::default()
    };
    Ok(Json(show_view(&view)).into_response())
}
