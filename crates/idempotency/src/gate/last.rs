//! The last word about a claim: said to the store, again and again while that is away, and known here until it is heard.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_store::Answer;

use super::{Away, Gate, Ticket};
use crate::here::Known;
use crate::tally::Event;

/// How long a last word to the store is tried again when the store was away.
const LAST_WORD_FOR: Duration = Duration::from_secs(300);
/// The pause before it is tried again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

/// The last word about a claim.
#[derive(Clone, Debug)]
pub(crate) enum Last {
    /// The answer is kept.
    Answer(Bytes),
    /// The key is free.
    Free,
    /// The lease ends now: held or taken over, as the claim says.
    Lapse,
}

/// What came of the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Yes,
    /// Somebody else has the key.
    Lost,
    /// The store was away; it is tried again in the background.
    Later,
}

impl Gate {
    /// Says the last word about a claim. When the store is away it is said again in the background until it is heard, and
    /// until then an answer is given from here.
    pub(crate) async fn settle(&self, ticket: &Arc<Ticket>, last: Last) -> Settled {
        let settled = match self.in_time(ticket, "settle a key", self.say(ticket, &last)).await {
            Ok(true) => Settled::Yes,
            Ok(false) => Settled::Lost,
            Err(Away) => Settled::Later,
        };
        match (&last, settled) {
            (Last::Answer(bytes), Settled::Later) => {
                let known = Known::Answered(bytes.clone());
                self.0.here.note(&ticket.kept_as, ticket.token, ticket.fingerprint, known);
            }
            _ => self.0.here.forget(&ticket.kept_as, ticket.token),
        }
        if settled == Settled::Later {
            let (gate, ticket) = (self.clone(), Arc::clone(ticket));
            self.spawn(async move { gate.settle_later(&ticket, &last).await });
        }
        self.0.waiting.nudge(&ticket.kept_as);
        settled
    }

    async fn settle_later(&self, ticket: &Ticket, last: &Last) {
        let (mut pause, most) = PAUSES;
        let mut left = LAST_WORD_FOR;
        let mut heard = None;
        while heard.is_none() && left > Duration::ZERO {
            tokio::time::sleep(pause).await;
            left = left.saturating_sub(pause);
            pause = (pause * 2).min(most);
            let said = tokio::time::timeout(ticket.policy.store_patience, self.say(ticket, last)).await;
            heard = said.ok().and_then(Result::ok);
        }
        self.0.here.forget(&ticket.kept_as, ticket.token);
        self.0.waiting.nudge(&ticket.kept_as);
        let key = ticket.name.key.shadow();
        match heard {
            Some(true) => {}
            // It may have been heard the first time, and only the reply was lost.
            Some(false) if self.stands_as_ours(ticket, last).await => {}
            Some(false) => {
                Event::LeaseLost.count();
                tracing::warn!(%key, "what came of a request was not kept: another request has its key by now");
            }
            None => {
                tracing::error!(%key, "what came of a request was not kept: the store was away for too long");
            }
        }
    }

    async fn stands_as_ours(&self, ticket: &Ticket, last: &Last) -> bool {
        let look = self.0.store.look_record(&ticket.kept_as);
        let found = self.in_time(ticket, "look at a key", look).await.ok().flatten();
        match last {
            Last::Free => found.is_none_or(|record| record.token != ticket.token),
            Last::Answer(_) | Last::Lapse => found.is_none_or(|record| record.token == ticket.token),
        }
    }

    fn say<'a>(&'a self, ticket: &Ticket, last: &Last) -> Answer<'a, bool> {
        let (store, name, token) = (&self.0.store, &ticket.kept_as, ticket.token);
        match last {
            Last::Answer(bytes) => store.complete_record(name, token, bytes.clone()),
            Last::Free => store.release_record(name, token),
            Last::Lapse => store.renew_record(name, token, Duration::ZERO),
        }
    }
}
