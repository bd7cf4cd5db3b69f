//! Starts the service with the layer on it. `INTAKE_LISTEN` says where, `INTAKE_DATA` where keys and answers are kept.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderName;
use intake::{Shelf, items};
use tidegate_idempotency::{Gate, IdempotencyLayer, Policy, Scoping, sweep_now_and_then};
use tidegate_store_embedded::{Embedded, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::var("INTAKE_LISTEN").unwrap_or_else(|_| "127.0.0.1:7410".to_owned());
    let data = std::env::var("INTAKE_DATA").unwrap_or_else(|_| "intake-data".to_owned());

    let store = Arc::new(Embedded::open(Path::new(&data), Options::default())?);
    let gate = Gate::new(store.clone());
    let by_caller = Scoping::header(HeaderName::from_static("x-api-key"));
    let once = IdempotencyLayer::new(gate.clone(), Policy::default(), by_caller)?;
    tokio::spawn(sweep_now_and_then(store));

    let listener = tokio::net::TcpListener::bind(&listen).await?;
    println!("taking items in at http://{}/api/v1/items", listener.local_addr()?);
    let service = items(Shelf::default()).layer(once);
    axum::serve(listener, service).with_graceful_shutdown(stopped()).await?;
    gate.drain().await;
    Ok(())
}

async fn stopped() {
    drop(tokio::signal::ctrl_c().await);
}
