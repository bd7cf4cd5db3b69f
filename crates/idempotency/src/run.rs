//! One request with a key, from its claim to the last word about it, in a task of its own: a client that hangs up does not
//! stop it. The end of an answer is not shown to the client before the answer is kept.

mod replay;
mod work;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Response};
use tokio::sync::oneshot;

use crate::answer::Kept;
use crate::body::Body;
use crate::gate::{Away, Gate, Last, Ticket, Turn};
use crate::policy::{InFlight, StoreAway};
use crate::refusal::Refusal;
use crate::tally::Event;

/// Says that a request was handled without protection.
const UNPROTECTED: HeaderName = HeaderName::from_static("idempotency-unprotected");

/// Pauses between looks at a key that another request works on, at first and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The client that waits for the answer, if it still does.
pub(crate) type Client<E> = oneshot::Sender<Result<Response<Body>, E>>;

/// The handler's answer in the making.
pub(crate) type Answering<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

/// The handler, called at most once.
pub(crate) type Handler<E> = Box<dyn FnOnce(Request<Body>) -> Answering<E> + Send>;

/// A request with a key, read whole.
pub(crate) struct Run<E> {
    pub(crate) gate: Gate,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) handler: Handler<E>,
    pub(crate) request: Request<Body>,
    pub(crate) client: Client<E>,
}

impl<E: Send + 'static> Run<E> {
    /// Claims the key and does what the claim allows.
    pub(crate) async fn go(mut self) {
        match self.turn().await {
            Ok(Turn::Yours) => {
                Event::Miss.count();
                self.work().await;
            }
            Ok(Turn::Answered(Ok(Kept::Whole(whole)))) => {
                Event::Hit.count();
                let answer = replay::answer(whole, &self.ticket.accepts).await;
                drop(self.client.send(Ok(answer)));
            }
            Ok(Turn::Answered(Ok(Kept::TooLarge(_)))) => {
                self.refuse(&Refusal::NotReplayable);
            }
            Ok(Turn::Answered(Err(damaged))) => {
                Event::Damaged.count();
                let key = self.ticket.name.key.shadow();
                tracing::error!(%key, "the stored answer of a key cannot be served: {damaged}");
                self.refuse(&Refusal::AnswerDamaged);
            }
            Ok(Turn::Processing) => {
                Event::Collision.count();
                self.refuse(&Refusal::Processing);
            }
            Ok(Turn::Unknown) => {
                Event::OutcomeUnknown.count();
                self.refuse(&Refusal::OutcomeUnknown);
            }
            Ok(Turn::Conflict(differences)) => {
                Event::Conflict.count();
                self.refuse(&Refusal::Conflict(differences));
            }
            Err(Away) => self.without_store().await,
        }
    }

    /// What the store says now, or, where repeats wait, as soon as the key is not in work any more.
    async fn turn(&mut self) -> Result<Turn, Away> {
        let first = self.gate.claim(&self.ticket).await?;
        let (Turn::Processing, InFlight::Wait(at_most)) = (&first, self.ticket.policy.in_flight) else {
            return Ok(first);
        };
        let Some(place) = self.gate.waiting().enter(&self.ticket.kept_as) else { return Ok(first) };
        let over = tokio::time::sleep(at_most);
        tokio::pin!(over);
        let (mut pause, longest) = LOOKS;
        loop {
            let nudged = place.nudge.notified();
            tokio::pin!(nudged);
            nudged.as_mut().enable();
            match self.gate.claim(&self.ticket).await? {
                Turn::Processing if over.is_elapsed() => return Ok(Turn::Processing),
                Turn::Processing => {}
                turn => return Ok(turn),
            }
            tokio::select! {
                () = nudged => {}
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(longest),
                () = over.as_mut() => {}
                () = self.client.closed() => return Ok(Turn::Processing),
            }
        }
    }

    /// The claim may have been made all the same: it is taken back, so that the key is not blocked.
    async fn without_store(self) {
        let (gate, ticket) = (self.gate.clone(), Arc::clone(&self.ticket));
        gate.clone().spawn(async move {
            gate.settle(&ticket, Last::Free).await;
        });
        match self.ticket.policy.store_away {
            StoreAway::Refuse => self.refuse(&Refusal::StoreAway),
            StoreAway::PassOn => self.unprotected().await,
        }
    }

    async fn unprotected(self) {
        Event::Unprotected.count();
        let answer = (self.handler)(self.request).await.map(|mut response| {
            response.headers_mut().insert(UNPROTECTED, HeaderValue::from_static("true"));
            response
        });
        drop(self.client.send(answer));
    }

    fn refuse(self, refusal: &Refusal) {
        let answer = refusal.answer(self.ticket.policy.dialect, Some(self.ticket.name.key.as_str()));
        drop(self.client.send(Ok(answer)));
    }
}
