//! Who is there, when nobody else can be: one node and its one partition, told in the words of many.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use tidegate_cluster::View;

use super::Answer;
use crate::app::Shared;
use crate::front::show_view;

pub(super) async fn alone(State(app): State<Shared>) -> Answer {
    let owners = app.house.store.owners().await.map_err(tidegate::Error::from)?;
    let me = owners.first().map(|owner| owner.node.clone()).unwrap_or_default();
    let owners: BTreeMap<_, _> = owners.into_iter().map(|owner| (owner.partition, owner)).collect();
    let view = View { me, partitions: 1, joined: true, owners, here: vec![0], ..View::default() };
    Ok(Json(show_view(&view)).into_response())
}
