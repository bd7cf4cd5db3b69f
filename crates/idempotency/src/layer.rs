//! The `tower` layer. A request without a key, or of another method, passes untouched.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, Request, Response};
use tidegate_core::shared::record::Token;
use tidegate_encoding::AcceptEncoding;
use tokio::sync::oneshot;
use tower::{Layer, Service};

use crate::body::{self, Body, BoxError};
use crate::fingerprint::Fingerprint;
use crate::gate::{Gate, Ticket};
use crate::intake;
use crate::key::{self, Asked, Key};
use crate::name::Name;
use crate::policy::{OutOfBounds, Policy};
use crate::refusal::Refusal;
use crate::run::{Answering, Handler, Run};
use crate::scope::Scoping;

/// Makes the requests of a service happen once.
#[derive(Clone)]
pub struct IdempotencyLayer {
    gate: Gate,
    policy: Arc<Policy>,
    scoping: Scoping,
}

impl IdempotencyLayer {
    /// A layer over the keys behind `gate`. Whose key it is must be said: `Scoping::header`, `Scoping::by`, or, aloud,
    /// `Scoping::unscoped`. Put what checks credentials outside of this layer, so that a repeat passes it too.
    ///
    /// # Errors
    /// When a figure of the policy is out of its bounds.
    pub fn new(gate: Gate, policy: Policy, scoping: Scoping) -> Result<Self, OutOfBounds> {
        policy.check()?;
        Ok(Self { gate, policy: Arc::new(policy), scoping })
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency { inner, layer: self.clone() }
    }
}

/// A service whose requests happen once.
#[derive(Clone)]
pub struct Idempotency<S> {
    inner: S,
    layer: IdempotencyLayer,
}

impl<S, B, RB> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<Body>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    RB: http_body::Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answering<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(body::passing);
        let policy = &self.layer.policy;
        let asked = if policy.methods.contains(request.method()) {
            key::read(request.headers(), policy.key_form())
        } else {
            return pass(self.inner.call(request));
        };
        let refuse = |refusal: Refusal, key: Option<&str>| {
            let answer = refusal.answer(policy.dialect, key);
            Box::pin(std::future::ready(Ok(answer)))
        };
        match asked {
            Asked::Nothing if policy.required => refuse(Refusal::Missing, None),
            Asked::Nothing => pass(self.inner.call(request)),
            Asked::Malformed { as_sent, is_printable } => {
                let form = policy.key_form();
                refuse(Refusal::Malformed { form, is_printable }, Some(&as_sent))
            }
            Asked::Key(key) => {
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let handler = Box::new(move |request| pass(ready.call(request)));
                Box::pin(self.layer.clone().once(handler, request, key))
            }
        }
    }
}

/// The codings that a client says it can read; one that says nothing reads none.
fn accepted(headers: &HeaderMap) -> AcceptEncoding {
    let lines = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|line| line.to_str().ok());
    AcceptEncoding::parse(&lines.collect::<Vec<_>>().join(","))
}

fn pass<F, RB, E>(future: F) -> Answering<E>
where
    F: Future<Output = Result<Response<RB>, E>> + Send + 'static,
    RB: http_body::Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    Box::pin(async move { future.await.map(|response| response.map(body::passing)) })
}

impl IdempotencyLayer {
    /// Reads the request whole and lets it happen once, in a task that ends when it is done, not when its client goes.
    async fn once<E: Send + 'static>(
        self,
        handler: Handler<E>,
        request: Request<Body>,
        key: Key,
    ) -> Result<Response<Body>, E> {
        let dialect = self.policy.dialect;
        let refused = |refusal: Refusal, key: &Key| Ok(refusal.answer(dialect, Some(key.as_str())));
        let (mut parts, incoming) = request.into_parts();
        parts.extensions.insert(key.clone());
        let Some(scope) = self.scoping.of(&parts) else {
            return refused(Refusal::NoScope(self.scoping.by_header().cloned()), &key);
        };
        let fingerprint = Fingerprint::of(&parts, self.policy.fingerprint);
        let room = self.gate.room();
        let (body, fingerprint) = match intake::read(incoming, fingerprint, &self.policy, room).await {
            Ok(read) => read,
            Err(refusal) => {
                refusal.count();
                return refused(refusal, &key);
            }
        };
        let mut token = [0; 16];
        if getrandom::fill(&mut token).is_err() {
            return refused(Refusal::StoreAway, &key);
        }
        let name = Name::of(scope, &parts, key.clone());
        let kept_as = name.to_string();
        let accepts = accepted(&parts.headers);
        let (token, policy) = (Token(token), self.policy);
        let ticket = Ticket { name, kept_as, fingerprint, token, policy, accepts };
        let request = Request::from_parts(parts, body);
        let (client, answer) = oneshot::channel();
        let run = Run { gate: self.gate.clone(), ticket: Arc::new(ticket), handler, request, client };
        self.gate.spawn(run.go());
        match answer.await {
            Ok(answer) => answer,
            Err(_) => refused(Refusal::Panicked, &key),
        }
    }
}
