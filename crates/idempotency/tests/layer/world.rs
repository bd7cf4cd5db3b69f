//! A layer, a scripted handler that counts its calls, and a store that can be made unavailable.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tidegate_contract::{FaultPlan, FaultyStore};
use tidegate_core::Time;
use tidegate_idempotency::{
    CallerScope, Idempotency, IdempotencyLayer, KeyStore, LayerBody, Policy, ScopeExtractor,
};
use tidegate_store::Clock;
use tidegate_store_embedded::MemoryStore;
use tokio::time::Instant;
use tower::{Layer, Service};

/// The store's clock, which moves with tokio's.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000_000).after(self.0.elapsed())
    }
}

/// An error of the handler.
#[derive(Debug)]
pub(crate) struct HandlerError;

type HandlerFuture = Pin<Box<dyn Future<Output = Result<Response<LayerBody>, HandlerError>> + Send>>;
type Script = dyn Fn(usize) -> HandlerFuture + Send + Sync;

/// Counts its calls, from 1, remembers their bodies, and responds as its script says.
#[derive(Clone)]
pub(crate) struct Handler {
    runs: Arc<AtomicUsize>,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    script: Arc<Script>,
}

impl Handler {
    pub(crate) fn new<F>(script: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response<LayerBody>, HandlerError>> + Send + 'static,
    {
        let script = Arc::new(move |nth| -> HandlerFuture { Box::pin(script(nth)) });
        Self { runs: Arc::default(), bodies: Arc::default(), script }
    }

    /// Returns 201 with the number of the call.
    pub(crate) fn creating() -> Self {
        Self::new(|nth| async move { Ok(text(StatusCode::CREATED, &format!("made {nth}"))) })
    }

    /// Returns one status after the other, and the last one from then on.
    pub(crate) fn with_statuses(statuses: &'static [u16]) -> Self {
        Self::new(move |nth| async move {
            let status = statuses[(nth - 1).min(statuses.len() - 1)];
            Ok(text(StatusCode::from_u16(status).unwrap(), &format!("answer {nth}")))
        })
    }

    /// Returns 201 after some time.
    pub(crate) fn slow(time: Duration) -> Self {
        Self::new(move |nth| async move {
            tokio::time::sleep(time).await;
            Ok(text(StatusCode::CREATED, &format!("made {nth}")))
        })
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.bodies.lock().unwrap().clone()
    }
}

impl Service<Request<LayerBody>> for Handler {
    type Response = Response<LayerBody>;
    type Error = HandlerError;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HandlerError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<LayerBody>) -> HandlerFuture {
        let handler = self.clone();
        Box::pin(async move {
            let nth = handler.runs.fetch_add(1, Ordering::SeqCst) + 1;
            let body = request.into_body().collect().await.map_err(|_| HandlerError)?.to_bytes();
            handler.bodies.lock().unwrap().push(body);
            (handler.script)(nth).await
        })
    }
}

/// One process: its key store, and the layer in front of its handler.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) gate: KeyStore,
    pub(crate) handler: Handler,
    service: Idempotency<Handler>,
}

/// A store in memory.
pub(crate) fn store() -> Arc<FaultyStore> {
    let memory = MemoryStore::new(Arc::new(TokioClock(Instant::now())));
    Arc::new(FaultyStore::new(Arc::new(memory), FaultPlan::none()))
}

impl World {
    pub(crate) fn new(handler: Handler, policy: Policy) -> Self {
        Self::on(store(), handler, policy)
    }

    /// Another process on the same store.
    pub(crate) fn on(store: Arc<FaultyStore>, handler: Handler, policy: Policy) -> Self {
        let gate = KeyStore::new(Arc::clone(&store) as _);
        Self::behind(gate, store, handler, policy)
    }

    pub(crate) fn behind(gate: KeyStore, store: Arc<FaultyStore>, handler: Handler, policy: Policy) -> Self {
        let by_tenant = ScopeExtractor::from_fn(|parts| {
            let tenant = parts.headers.get("x-tenant").map_or(Ok("acme"), HeaderValue::to_str);
            tenant.ok().filter(|tenant| !tenant.is_empty()).map(CallerScope::named)
        });
        let layer = IdempotencyLayer::new(gate.clone(), policy, by_tenant).unwrap();
        let service = layer.layer(handler.clone());
        Self { store, gate, handler, service }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        Answer::of(self.try_send(request).await.expect("the handler failed")).await
    }

    pub(crate) async fn try_send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<LayerBody>, HandlerError> {
        let mut service = self.service.clone();
        std::future::poll_fn(|context| service_ready(&mut service, context)).await?;
        service.call(request).await
    }

    pub(crate) async fn post(&self, key: &str, body: &str) -> Answer {
        self.send(post(key, body)).await
    }

    /// Sends a body of any kind.
    pub(crate) async fn send_body<B>(&self, request: Request<B>) -> Answer
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tidegate_idempotency::BoxError>,
    {
        let mut service = self.service.clone();
        Answer::of(service.call(request).await.expect("the handler failed")).await
    }
}

fn service_ready(
    service: &mut Idempotency<Handler>,
    context: &mut Context<'_>,
) -> Poll<Result<(), HandlerError>> {
    Service::<Request<Full<Bytes>>>::poll_ready(service, context)
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    /// `None` when it broke off.
    pub(crate) body: Option<String>,
    pub(crate) trailers: Option<http::HeaderMap>,
}

impl Answer {
    pub(crate) async fn of(response: Response<LayerBody>) -> Self {
        let (parts, body) = response.into_parts();
        let read = body.collect().await.ok();
        let trailers = read.as_ref().and_then(|body| body.trailers().cloned());
        let body = read.map(|body| String::from_utf8(body.to_bytes().to_vec()).unwrap());
        Self { status: parts.status.as_u16(), headers: parts.headers, body, trailers }
    }

    pub(crate) fn text(&self) -> &str {
        self.body.as_deref().expect("the body broke")
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    /// The code of an error response.
    pub(crate) fn code(&self) -> &str {
        let code = self.text().split("\"error_code\":\"").nth(1).and_then(|rest| rest.split('"').next());
        code.unwrap_or_default()
    }
}

pub(crate) fn post(key: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post("/api/v1/items")
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

pub(crate) fn text(status: StatusCode, text: &str) -> Response<LayerBody> {
    let body = Full::from(text.to_owned()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

pub(crate) const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}
