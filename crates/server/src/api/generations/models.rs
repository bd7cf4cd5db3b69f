//! Models: who serves each of them now. They are changed in the configuration file.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use super::super::HandlerResult;
use crate::state::SharedPartition;
use crate::wire::model::{ModelOut, ModelsOut};

pub(crate) async fn list(State(app): State<SharedPartition>) -> HandlerResult {
    app.generations()?;
    let service = app.server.generations.as_ref();
    let models = service.map(|service| service.dispatch.models()).unwrap_or_default();
    Ok(Json(ModelsOut { models: models.iter().map(ModelOut::new).collect() }).into_response())
}
