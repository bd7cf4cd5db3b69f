//! One request with a key, from its claim to its settlement, in a task of its own: a client that
//! disconnects does not stop it. The client does not see the end of a response before the response
//! is saved.

mod execute;
mod replay;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::body::LayerBody;
use crate::counters::Event;
use crate::held_key::HeldKey;
use crate::key_store::{ClaimOutcome, KeyClaim, KeySettleAction, KeyStore, StoreUnavailable};
use crate::policy::{InFlightPolicy, StoreUnavailablePolicy};
use crate::refusal::Refusal;
use crate::saved_response::SavedResponse;

/// Marks the response to a request that was handled without protection.
const UNPROTECTED: HeaderName = HeaderName::from_static("idempotency-unprotected");

/// The first and the longest pause between two looks at a key that another request works on.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The client that waits for the response, if it still does.
pub(crate) type ResponseSender<E> = oneshot::Sender<Result<Response<LayerBody>, E>>;

/// The handler's pending response.
pub(crate) type ResponseFuture<E> = Pin<Box<dyn Future<Output = Result<Response<LayerBody>, E>> + Send>>;

/// The handler, called at most once.
pub(crate) type Handler<E> = Box<dyn FnOnce(Request<LayerBody>) -> ResponseFuture<E> + Send>;

/// A request with a key and a buffered body.
pub(crate) struct KeyedRequest<E> {
    pub(crate) key_store: KeyStore,
    pub(crate) claim: Arc<KeyClaim>,
    pub(crate) handler: Handler<E>,
    pub(crate) request: Request<LayerBody>,
    pub(crate) client: ResponseSender<E>,
}

impl<E: Send + 'static> KeyedRequest<E> {
    /// Claims the key and does what the claim allows.
    pub(crate) async fn run(mut self) {
        let started = Instant::now();
        match self.claim_or_wait().await {
            Ok(ClaimOutcome::Yours { taken_over }) => {
                self.key_store.hits().count_miss();
                self.request.extensions_mut().insert(HeldKey {
                    name: self.claim.record_key.as_str().into(),
                    ttl: self.claim.policy.ttl,
                    since: (!taken_over).then_some(started),
                });
                self.execute().await;
            }
            Ok(ClaimOutcome::Answered(Ok(SavedResponse::Buffered(whole)))) => {
                self.key_store.hits().count_hit();
                let answer = replay::replay_response(whole, &self.claim.accepts).await;
                drop(self.client.send(Ok(answer)));
            }
            Ok(ClaimOutcome::Answered(Ok(SavedResponse::TooLarge(_)))) => {
                self.refuse(&Refusal::NotReplayable);
            }
            Ok(ClaimOutcome::Answered(Err(damaged))) => {
                Event::Damaged.count();
                let key = self.claim.name.key.redacted();
                tracing::error!(%key, "the stored response of a key cannot be served: {damaged}");
                self.refuse(&Refusal::AnswerDamaged);
            }
            Ok(ClaimOutcome::Processing) => {
                Event::Collision.count();
                self.refuse(&Refusal::Processing);
            }
            Ok(ClaimOutcome::Unknown) => {
                Event::OutcomeUnknown.count();
                self.refuse(&Refusal::OutcomeUnknown);
            }
            Ok(ClaimOutcome::Conflict(differences)) => {
                Event::Conflict.count();
                self.refuse(&Refusal::Conflict(differences));
            }
            Err(StoreUnavailable) => self.without_store().await,
        }
    }

    /// Claims the key; if retries wait, does so as soon as the key is no longer in flight.
    async fn claim_or_wait(&mut self) -> Result<ClaimOutcome, StoreUnavailable> {
        let first = self.key_store.claim(&self.claim).await?;
        let (ClaimOutcome::Processing, InFlightPolicy::Wait(at_most)) = (&first, self.claim.policy.in_flight)
        else {
            return Ok(first);
        };
        let Some(place) = self.key_store.waiters().enter(&self.claim.record_key) else { return Ok(first) };
        let over = tokio::time::sleep(at_most);
        tokio::pin!(over);
        let (mut pause, longest) = LOOKS;
        loop {
            let nudged = place.awaited.nudge.notified();
            tokio::pin!(nudged);
            nudged.as_mut().enable();
            let turn = self.key_store.claim(&self.claim).await?;
            if place.is_in_doubt() {
                return Ok(self.without_turn(turn).await);
            }
            match turn {
                ClaimOutcome::Processing if over.is_elapsed() => return Ok(ClaimOutcome::Processing),
                ClaimOutcome::Processing => {}
                turn => return Ok(turn),
            }
            tokio::select! {
                () = nudged => {}
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(longest),
                () = over.as_mut() => {}
                () = self.client.closed() => return Ok(ClaimOutcome::Processing),
            }
        }
    }

    /// The outcome for a request that waited for one of unknown outcome. That may still be running:
    /// only a client that asks again decides to run it a second time.
    async fn without_turn(&mut self, turn: ClaimOutcome) -> ClaimOutcome {
        match turn {
            ClaimOutcome::Yours { .. } => {
                self.key_store.settle(&self.claim, KeySettleAction::Free).await;
                ClaimOutcome::Unknown
            }
            ClaimOutcome::Processing => ClaimOutcome::Unknown,
            other => other,
        }
    }

    /// Handles a failed claim. It may have been made all the same: it is withdrawn, so that the key
    /// is not blocked.
    async fn without_store(self) {
        let (gate, ticket) = (self.key_store.clone(), Arc::clone(&self.claim));
        gate.clone().spawn(async move {
            gate.settle(&ticket, KeySettleAction::Free).await;
        });
        match self.claim.policy.store_unavailable {
            StoreUnavailablePolicy::Refuse => self.refuse(&Refusal::StoreUnavailable),
            StoreUnavailablePolicy::PassOn => self.run_unprotected().await,
        }
    }

    async fn run_unprotected(self) {
        Event::Unprotected.count();
        let answer = (self.handler)(self.request).await.map(|mut response| {
            response.headers_mut().insert(UNPROTECTED, HeaderValue::from_static("true"));
            response
        });
        drop(self.client.send(answer));
    }

    fn refuse(self, refusal: &Refusal) {
        let answer = refusal.answer(self.claim.policy.dialect, Some(self.claim.name.key.as_str()));
        drop(self.client.send(Ok(answer)));
    }
}
