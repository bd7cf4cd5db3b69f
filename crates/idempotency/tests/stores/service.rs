//! A layer on one connection to a store, and a handler that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate_idempotency::{IdempotencyLayer, KeyStore, LayerBody, Policy, ScopeExtractor};
use tidegate_store::Store;
use tower::{Layer, Service};

/// What the handler returns, and how long it takes.
#[derive(Clone)]
pub(crate) struct HandlerBehavior {
    pub(crate) runs: Arc<AtomicUsize>,
    pub(crate) takes: Duration,
    pub(crate) answer: Bytes,
}

impl HandlerBehavior {
    pub(crate) fn new(takes: Duration, answer: impl Into<Bytes>) -> Self {
        Self { runs: Arc::default(), takes, answer: answer.into() }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// One process.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) gate: KeyStore,
    layer: IdempotencyLayer,
    work: HandlerBehavior,
}

impl Process {
    pub(crate) fn new(store: &Arc<dyn Store>, work: &HandlerBehavior, policy: Policy) -> Self {
        let gate = KeyStore::new(Arc::clone(store) as _);
        let layer = IdempotencyLayer::new(gate.clone(), policy, ScopeExtractor::unscoped()).unwrap();
        Self { gate, layer, work: work.clone() }
    }

    /// The status, headers and body of the response to a POST.
    pub(crate) async fn post(&self, key: &str, body: &str) -> (u16, HeaderMap, Bytes) {
        let work = self.work.clone();
        let handler = tower::service_fn(move |_: Request<LayerBody>| {
            let work = work.clone();
            async move {
                work.runs.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(work.takes).await;
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(work.answer)))
            }
        });
        let request = Request::post("/orders").header("idempotency-key", key);
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let response = self.layer.layer(handler).call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
    }
}
