//! A service that creates items. With the idempotency layer a client may repeat a request as often
//! as it likes: the item is created once.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

/// The request to create an item.
#[derive(Clone, Debug, Deserialize)]
pub struct NewItem {
    sku: String,
    title: String,
}

/// A created item.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    id: usize,
    sku: String,
    title: String,
}

/// The items that were created.
#[derive(Clone, Default)]
pub struct ItemStore(Arc<Mutex<Vec<Item>>>);

impl ItemStore {
    /// The number of items.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The routes: `POST /api/v1/items` creates an item, `GET` lists them all.
pub fn router(shelf: ItemStore) -> Router {
    Router::new().route("/api/v1/items", post(create_item).get(list_items)).with_state(shelf)
}

async fn create_item(State(shelf): State<ItemStore>, Json(new): Json<NewItem>) -> (StatusCode, Json<Item>) {
    let mut shelf = shelf.0.lock().unwrap_or_else(PoisonError::into_inner);
    let item = Item { id: shelf.len() + 1, sku: new.sku, title: new.title };
    shelf.push(item.clone());
    (StatusCode::CREATED, Json(item))
}

async fn list_items(State(shelf): State<ItemStore>) -> Json<Vec<Item>> {
    Json(shelf.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}
