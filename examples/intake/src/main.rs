//! Starts the service with the idempotency layer. `INTAKE_LISTEN` is the address, `INTAKE_DATA` the
//! directory for keys and responses.

use std::error::Error;

use axum::http::HeaderName;
use intake::{ItemStore, router};
use tidegate_idempotency::{IdempotencyLayer, KeyStore, Policy, ScopeExtractor, store, sweep_periodically};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::var("INTAKE_LISTEN").unwrap_or_else(|_| "127.0.0.1:7410".to_owned());
    let data = std::env::var("INTAKE_DATA").unwrap_or_else(|_| "intake-data".to_owned());

    let store = store::open(&format!("file:{data}")).await?;
    let gate = KeyStore::new(store.clone());
    let by_caller = ScopeExtractor::header(HeaderName::from_static("x-api-key"));
    let once = IdempotencyLayer::new(gate.clone(), Policy::default(), by_caller)?;
    tokio::spawn(sweep_periodically(store));

    let listener = tokio::net::TcpListener::bind(&listen).await?;
    println!("listening on http://{}/api/v1/items", listener.local_addr()?);
    let service = router(ItemStore::default()).layer(once);
    axum::serve(listener, service).with_graceful_shutdown(shutdown_signal()).await?;
    gate.drain().await;
    Ok(())
}

async fn shutdown_signal() {
    drop(tokio::signal::ctrl_c().await);
}
