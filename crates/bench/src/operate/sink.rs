//! A server in this process that responds to everything with an empty object: the upstream of the
//! operations, and the collector of their traces.

use std::net::Ipv4Addr;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// It stops when this is dropped.
#[derive(Debug)]
pub(super) struct Sink {
    /// `http://127.0.0.1:PORT`.
    pub base_url: String,
    serving: JoinHandle<()>,
}

impl Sink {
    pub(super) async fn start() -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let base_url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let router = Router::new().fallback(accept);
        let serving = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the upstream failed: {error}");
            }
        });
        Ok(Self { base_url, serving })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Reads the whole request, as a real one would.
async fn accept(_body: Bytes) -> Json<Value> {
    Json(json!({}))
}
