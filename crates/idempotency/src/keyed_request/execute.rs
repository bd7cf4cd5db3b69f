//! Runs the handler: the claim is renewed while it runs, and its outcome decides how the claim is
//! settled.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tidegate_core::{AttemptEnd, OutcomeClass};

use super::{KeyedRequest, replay};
use crate::body::{CollectedBody, LayerBody, ResponseFrame, channel_body};
use crate::counters::Event;
use crate::key_store::{KeyClaim, KeySettleAction, KeySettleOutcome, KeyStore};
use crate::refusal::Refusal;
use crate::saved_response::{BufferedResponse, SavedResponse, replayable_headers, replayable_trailers};

impl<E: Send + 'static> KeyedRequest<E> {
    /// Runs the handler and settles its outcome, renewing the claim meanwhile.
    pub(super) async fn execute(self) {
        let (gate, ticket) = (self.key_store.clone(), Arc::clone(&self.claim));
        tokio::select! {
            biased;
            () = self.handle() => {}
            () = gate.renew_until_lost(&ticket) => {}
        }
    }

    async fn handle(self) {
        let Self { key_store: gate, claim: ticket, handler, request, client } = self;
        let books = ClaimSettler { key_store: gate, claim: ticket };
        match AssertUnwindSafe(async { handler(request).await }).catch_unwind().await {
            Err(_) => {
                tracing::error!(key = %books.claim.name.key.redacted(), "the handler of a request with a key panicked");
                books.settle_unknown().await;
                drop(client.send(Ok(books.refusal(&Refusal::Panicked))));
            }
            Ok(Err(cause)) => {
                books.settle_unknown().await;
                drop(client.send(Err(cause)));
            }
            Ok(Ok(response)) => {
                let tell = move |response| drop(client.send(Ok(response)));
                books.settle_response(response, tell).await;
            }
        }
    }
}

/// Settles the claim of one request.
struct ClaimSettler {
    key_store: KeyStore,
    claim: Arc<KeyClaim>,
}

impl ClaimSettler {
    fn refusal(&self, refusal: &Refusal) -> Response<LayerBody> {
        refusal.answer(self.claim.policy.dialect, Some(self.claim.name.key.as_str()))
    }

    async fn settle(&self, last: KeySettleAction) -> KeySettleOutcome {
        self.key_store.settle(&self.claim, last).await
    }

    /// The handler was started, and its outcome is unknown.
    async fn settle_unknown(&self) {
        Event::OutcomeUnknown.count();
        let last = match self.claim.policy.on_unknown {
            crate::policy::UnknownOutcomePolicy::Release => {
                self.key_store.waiters().doubt(&self.claim.record_key);
                KeySettleAction::Free
            }
            crate::policy::UnknownOutcomePolicy::Hold => KeySettleAction::Lapse,
        };
        self.settle(last).await;
    }

    /// Saves a response, or logs why not.
    async fn store_response(&self, kept: &SavedResponse) -> KeySettleOutcome {
        match self.key_store.encode_response(&self.claim, kept) {
            Some(bytes) => self.settle(KeySettleAction::Answer(bytes)).await,
            None => self.settle(KeySettleAction::Lapse).await,
        }
    }

    async fn settle_response(
        self,
        mut response: Response<LayerBody>,
        tell: impl FnOnce(Response<LayerBody>),
    ) {
        let said = response.extensions_mut().remove::<OutcomeClass>();
        let status = response.status();
        let end = AttemptEnd::Answered { status: status.as_u16(), is_complete: true, asks_to_wait: false };
        let by_status = || OutcomeClass::of(end);
        let is_kept = self.claim.policy.is_kept(status);
        match said.unwrap_or_else(by_status) {
            // Where failures are saved, a gateway's own failure is saved like any other, and not
            // retried.
            OutcomeClass::Unknown if said.is_some() || !is_kept => {
                self.settle_unknown().await;
                return tell(response);
            }
            OutcomeClass::Answered | OutcomeClass::Unknown if is_kept => {}
            _ => {
                self.settle(KeySettleAction::Free).await;
                return tell(response);
            }
        }
        match response.body().size_hint().exact() {
            Some(len) if len <= self.claim.policy.answer_max as u64 => {
                self.relay_buffered(response, tell).await;
            }
            Some(_) => {
                self.settle_too_large(response.status()).await;
                tell(response);
            }
            None => self.relay_streamed(response, tell).await,
        }
    }

    async fn settle_too_large(&self, status: StatusCode) {
        Event::NotReplayable.count();
        self.store_response(&SavedResponse::TooLarge(status)).await;
    }

    /// Reads and saves a response of known length, and then sends it. If it breaks off, nothing was
    /// sent yet, so the client gets a complete error response instead.
    async fn relay_buffered(self, response: Response<LayerBody>, tell: impl FnOnce(Response<LayerBody>)) {
        let (parts, mut body) = response.into_parts();
        let mut pieces = CollectedBody::default();
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => pieces.push(data),
                Ok(Err(other)) => pieces.trailers = other.into_trailers().ok(),
                Err(cause) => {
                    tracing::debug!(%cause, "a response broke off before any of it was sent");
                    self.settle_unknown().await;
                    return tell(self.refusal(&Refusal::AnswerBroken));
                }
            }
        }
        let kept = SavedResponse::Buffered(buffered_response(&parts, &pieces));
        if self.store_response(&kept).await == KeySettleOutcome::Lost
            && let Some(SavedResponse::Buffered(other)) =
                self.key_store.response_of_new_owner(&self.claim).await
        {
            return tell(replay::replay_response(other, &self.claim.accepts).await);
        }
        tell(Response::from_parts(parts, pieces.into_body()));
    }

    /// Relays a response of unknown length as it comes; only its end waits until all of it is
    /// saved.
    async fn relay_streamed(self, response: Response<LayerBody>, tell: impl FnOnce(Response<LayerBody>)) {
        let (parts, mut body) = response.into_parts();
        let (hand, handed) = channel_body();
        let (mut told, _) = Response::new(()).into_parts();
        told.clone_from(&parts);
        tell(Response::from_parts(told, handed));
        let mut pieces = CollectedBody::default();
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => {
                    pieces.push(data.clone());
                    drop(hand.send(ResponseFrame::Frame(Frame::data(data))));
                }
                // Trailers are the end.
                Ok(Err(other)) => pieces.trailers = other.into_trailers().ok(),
                Err(cause) => {
                    self.settle_unknown().await;
                    drop(hand.send(ResponseFrame::Broken(cause)));
                    return;
                }
            }
            if pieces.len() > self.claim.policy.answer_max as u64 {
                self.settle_too_large(parts.status).await;
                drop(hand.send(ResponseFrame::Rest(body)));
                return;
            }
        }
        self.store_response(&SavedResponse::Buffered(buffered_response(&parts, &pieces))).await;
        drop(pieces.trailers.map(|trailers| hand.send(ResponseFrame::Frame(Frame::trailers(trailers)))));
    }
}

fn buffered_response(parts: &http::response::Parts, pieces: &CollectedBody) -> BufferedResponse {
    BufferedResponse {
        status: parts.status,
        headers: replayable_headers(&parts.headers),
        body: pieces.to_bytes(),
        trailers: pieces.trailers.as_ref().map(replayable_trailers),
    }
}
