//! The `tower` layer. A request without a key, or with another method, passes untouched.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, Request, Response};
use tidegate_core::shared::record::HolderToken;
use tidegate_encoding::AcceptEncoding;
use tokio::sync::oneshot;
use tower::{Layer, Service};

use crate::body::{self, BoxError, LayerBody};
use crate::fingerprint::Fingerprint;
use crate::key::{self, IdempotencyKey, KeyHeader};
use crate::key_store::{KeyClaim, KeyStore};
use crate::keyed_request::{Handler, KeyedRequest, ResponseFuture};
use crate::name::RecordName;
use crate::policy::{Policy, PolicyError};
use crate::refusal::Refusal;
use crate::request_body;
use crate::scope::ScopeExtractor;

/// Makes the requests of a service idempotent.
#[derive(Clone)]
pub struct IdempotencyLayer {
    key_store: KeyStore,
    policy: Arc<Policy>,
    scoping: ScopeExtractor,
}

impl IdempotencyLayer {
    /// Creates a layer over the keys in `gate`. The scope of keys must be chosen explicitly:
    /// `ScopeExtractor::header`, `ScopeExtractor::from_fn` or `ScopeExtractor::unscoped`. Put
    /// authentication outside of this layer, so that retries pass it too.
    ///
    /// # Errors
    /// When a value of the policy is out of bounds.
    pub fn new(gate: KeyStore, policy: Policy, scoping: ScopeExtractor) -> Result<Self, PolicyError> {
        policy.check()?;
        Ok(Self { key_store: gate, policy: Arc::new(policy), scoping })
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency { inner, layer: self.clone() }
    }
}

/// A service whose requests are idempotent.
#[derive(Clone)]
pub struct Idempotency<S> {
    inner: S,
    layer: IdempotencyLayer,
}

impl<S, B, RB> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<LayerBody>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    RB: http_body::Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    type Response = Response<LayerBody>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut request = request.map(body::box_body);
        // The proxy behind this layer writes its errors in the same format.
        request.extensions_mut().insert(self.layer.policy.dialect);
        let policy = &self.layer.policy;
        let asked = if policy.methods.contains(request.method()) {
            key::parse_header(request.headers(), policy.key_form())
        } else {
            return box_response(self.inner.call(request));
        };
        let refuse = |refusal: Refusal, key: Option<&str>| {
            let answer = refusal.answer(policy.dialect, key);
            Box::pin(std::future::ready(Ok(answer)))
        };
        match asked {
            KeyHeader::Absent if policy.required => refuse(Refusal::Missing, None),
            KeyHeader::Absent => box_response(self.inner.call(request)),
            KeyHeader::Malformed { as_sent, is_printable, is_repeated } => {
                let form = policy.key_form();
                refuse(Refusal::Malformed { form, is_printable, is_repeated }, Some(&as_sent))
            }
            KeyHeader::Key(key) => {
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let handler = Box::new(move |request| box_response(ready.call(request)));
                Box::pin(self.layer.clone().handle_once(handler, request, key))
            }
        }
    }
}

/// The encodings that a client accepts; none if it does not say.
fn accepted(headers: &HeaderMap) -> AcceptEncoding {
    let lines = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|line| line.to_str().ok());
    AcceptEncoding::parse(&lines.collect::<Vec<_>>().join(","))
}

fn box_response<F, RB, E>(future: F) -> ResponseFuture<E>
where
    F: Future<Output = Result<Response<RB>, E>> + Send + 'static,
    RB: http_body::Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    Box::pin(async move { future.await.map(|response| response.map(body::box_body)) })
}

impl IdempotencyLayer {
    /// Buffers the request and handles it once, in a task that ends when it is done, not when its
    /// client disconnects.
    async fn handle_once<E: Send + 'static>(
        self,
        handler: Handler<E>,
        request: Request<LayerBody>,
        key: IdempotencyKey,
    ) -> Result<Response<LayerBody>, E> {
        let dialect = self.policy.dialect;
        let refused =
            |refusal: Refusal, key: &IdempotencyKey| Ok(refusal.answer(dialect, Some(key.as_str())));
        let (mut parts, incoming) = request.into_parts();
        parts.extensions.insert(key.clone());
        let Some(scope) = self.scoping.extract(&parts) else {
            return refused(Refusal::NoScope(self.scoping.header_name().cloned()), &key);
        };
        let fingerprint = Fingerprint::of(&parts, self.policy.fingerprint, self.policy.paths);
        let room = self.key_store.body_budget();
        let (body, fingerprint) =
            match request_body::read_body(incoming, fingerprint, &self.policy, room).await {
                Ok(read) => read,
                Err(refusal) => {
                    refusal.count();
                    return refused(refusal, &key);
                }
            };
        let mut token = [0; 16];
        if getrandom::fill(&mut token).is_err() {
            return refused(Refusal::StoreUnavailable, &key);
        }
        let name = RecordName::of(scope, &parts, self.policy.paths, key.clone());
        let kept_as = name.to_string();
        let accepts = accepted(&parts.headers);
        let (token, policy) = (HolderToken(token), self.policy);
        let ticket = KeyClaim { name, record_key: kept_as, fingerprint, token, policy, accepts };
        let request = Request::from_parts(parts, body);
        let (client, answer) = oneshot::channel();
        let run = KeyedRequest {
            key_store: self.key_store.clone(),
            claim: Arc::new(ticket),
            handler,
            request,
            client,
        };
        self.key_store.spawn(run.run());
        match answer.await {
            Ok(answer) => answer,
            Err(_) => refused(Refusal::Panicked, &key),
        }
    }
}
