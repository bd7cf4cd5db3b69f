//! The handler at work: the claim is kept while it works, and what comes of it decides the last word.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tidegate_core::outcome::{AttemptEnd, OutcomeClass, classify};

use super::{Run, replay};
use crate::answer::{Kept, Whole, headers_that_matter, trailers_that_matter};
use crate::body::{Body, Handed, Pieces, handed_on};
use crate::gate::{Gate, Last, Settled, Ticket};
use crate::refusal::Refusal;
use crate::tally::Event;

impl<E: Send + 'static> Run<E> {
    /// Lets the handler work and settles what comes of it, keeping the claim meanwhile.
    pub(super) async fn work(self) {
        let (gate, ticket) = (self.gate.clone(), Arc::clone(&self.ticket));
        tokio::select! {
            biased;
            () = self.handle() => {}
            () = gate.keep(&ticket) => {}
        }
    }

    async fn handle(self) {
        let Self { gate, ticket, handler, request, client } = self;
        let books = Books { gate, ticket };
        match AssertUnwindSafe(async { handler(request).await }).catch_unwind().await {
            Err(_) => {
                tracing::error!(key = %books.ticket.name.key.shadow(), "the handler of a request with a key panicked");
                books.unknown().await;
                drop(client.send(Ok(books.refusal(&Refusal::Panicked))));
            }
            Ok(Err(cause)) => {
                books.unknown().await;
                drop(client.send(Err(cause)));
            }
            Ok(Ok(response)) => {
                let tell = move |response| drop(client.send(Ok(response)));
                books.answered(response, tell).await;
            }
        }
    }
}

/// What is written down about one request.
struct Books {
    gate: Gate,
    ticket: Arc<Ticket>,
}

impl Books {
    fn refusal(&self, refusal: &Refusal) -> Response<Body> {
        refusal.answer(self.ticket.policy.dialect, Some(self.ticket.name.key.as_str()))
    }

    async fn last(&self, last: Last) -> Settled {
        self.gate.settle(&self.ticket, last).await
    }

    /// It was begun, and what came of it is not known.
    async fn unknown(&self) {
        Event::OutcomeUnknown.count();
        let last = match self.ticket.policy.on_unknown {
            crate::policy::OnUnknown::Release => Last::Free,
            crate::policy::OnUnknown::Hold => Last::Lapse,
        };
        self.last(last).await;
    }

    /// Keeps an answer, or says why not.
    async fn keep(&self, kept: &Kept) -> Settled {
        match self.gate.write(&self.ticket, kept) {
            Some(bytes) => self.last(Last::Answer(bytes)).await,
            None => self.last(Last::Lapse).await,
        }
    }

    async fn answered(self, mut response: Response<Body>, tell: impl FnOnce(Response<Body>)) {
        let said = response.extensions_mut().remove::<OutcomeClass>();
        let status = response.status();
        let by_status =
            || classify(AttemptEnd::Answered { status: status.as_u16(), is_complete: true }, false);
        let is_kept = self.ticket.policy.is_kept(status);
        match said.unwrap_or_else(by_status) {
            // Where failures are kept, a gateway's own is kept like any other, and not repeated.
            OutcomeClass::Unknown if said.is_some() || !is_kept => {
                self.unknown().await;
                return tell(response);
            }
            OutcomeClass::Answered | OutcomeClass::Unknown if is_kept => {}
            _ => {
                self.last(Last::Free).await;
                return tell(response);
            }
        }
        match response.body().size_hint().exact() {
            Some(len) if len <= self.ticket.policy.answer_max as u64 => self.whole(response, tell).await,
            Some(_) => {
                self.too_large(response.status()).await;
                tell(response);
            }
            None => self.streamed(response, tell).await,
        }
    }

    async fn too_large(&self, status: StatusCode) {
        Event::NotReplayable.count();
        self.keep(&Kept::TooLarge(status)).await;
    }

    /// An answer of known length is read, kept, and then told. One that breaks has told nobody anything yet, so the client
    /// gets a whole refusal in its place.
    async fn whole(self, response: Response<Body>, tell: impl FnOnce(Response<Body>)) {
        let (parts, mut body) = response.into_parts();
        let mut pieces = Pieces::default();
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => pieces.push(data),
                Ok(Err(other)) => pieces.trailers = other.into_trailers().ok(),
                Err(cause) => {
                    tracing::debug!(%cause, "an answer broke off before anything of it was told");
                    self.unknown().await;
                    return tell(self.refusal(&Refusal::AnswerBroken));
                }
            }
        }
        let kept = Kept::Whole(whole(&parts, &pieces));
        if self.keep(&kept).await == Settled::Lost
            && let Some(Kept::Whole(other)) = self.gate.answer_of_another(&self.ticket).await
        {
            return tell(replay::answer(other, &self.ticket.accepts).await);
        }
        tell(Response::from_parts(parts, pieces.into_body()));
    }

    /// An answer whose length nobody knows is handed on as it comes; only its end waits until all of it
    /// is kept.
    async fn streamed(self, response: Response<Body>, tell: impl FnOnce(Response<Body>)) {
        let (parts, mut body) = response.into_parts();
        let (hand, handed) = handed_on();
        let (mut told, _) = Response::new(()).into_parts();
        told.clone_from(&parts);
        tell(Response::from_parts(told, handed));
        let mut pieces = Pieces::default();
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => {
                    pieces.push(data.clone());
                    drop(hand.send(Handed::Frame(Frame::data(data))));
                }
                // Trailers are the end.
                Ok(Err(other)) => pieces.trailers = other.into_trailers().ok(),
                Err(cause) => {
                    self.unknown().await;
                    drop(hand.send(Handed::Broken(cause)));
                    return;
                }
            }
            if pieces.len() > self.ticket.policy.answer_max as u64 {
                self.too_large(parts.status).await;
                drop(hand.send(Handed::Rest(body)));
                return;
            }
        }
        self.keep(&Kept::Whole(whole(&parts, &pieces))).await;
        drop(pieces.trailers.map(|trailers| hand.send(Handed::Frame(Frame::trailers(trailers)))));
    }
}

fn whole(parts: &http::response::Parts, pieces: &Pieces) -> Whole {
    Whole {
        status: parts.status,
        headers: headers_that_matter(&parts.headers),
        body: pieces.joined(),
        trailers: pieces.trailers.as_ref().map(trailers_that_matter),
    }
}
