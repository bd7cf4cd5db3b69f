//! Settles a claim in the store. Retries while the store is unavailable, and remembers the result
//! in this process until the store has it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_store::StoreFuture;

use super::{KeyClaim, KeyStore, StoreUnavailable};
use crate::counters::Event;
use crate::local_claims::LocalClaimState;

/// How long a settlement is retried when the store was unavailable.
const LAST_WORD_FOR: Duration = Duration::from_secs(300);
/// The first and the longest pause between retries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

/// The way a claim is settled.
#[derive(Clone, Debug)]
pub(crate) enum KeySettleAction {
    /// The response is saved.
    Answer(Bytes),
    /// The key is freed.
    Free,
    /// The lease ends now: the key is then held or taken over, as the claim says.
    Lapse,
}

/// The outcome of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySettleOutcome {
    Done,
    /// Another request has the key.
    Lost,
    /// The store was unavailable; the settlement is retried in the background.
    Deferred,
}

impl KeyStore {
    /// Settles a claim. When the store is unavailable, retries in the background until it succeeds;
    /// until then, this process serves the response itself.
    pub(crate) async fn settle(&self, ticket: &Arc<KeyClaim>, last: KeySettleAction) -> KeySettleOutcome {
        let settled = match self.with_timeout(ticket, "settle a key", self.try_settle(ticket, &last)).await {
            Ok(true) => KeySettleOutcome::Done,
            Ok(false) => KeySettleOutcome::Lost,
            Err(StoreUnavailable) => KeySettleOutcome::Deferred,
        };
        match (&last, settled) {
            (KeySettleAction::Answer(bytes), KeySettleOutcome::Deferred) => {
                let known = LocalClaimState::Answered(bytes.clone());
                self.0.local_claims.note(&ticket.record_key, ticket.token, ticket.fingerprint, known);
            }
            _ => self.0.local_claims.forget(&ticket.record_key, ticket.token),
        }
        if settled == KeySettleOutcome::Deferred {
            let (gate, ticket) = (self.clone(), Arc::clone(ticket));
            self.spawn(async move { gate.settle_in_background(&ticket, &last).await });
        }
        self.0.waiters.notify(&ticket.record_key);
        settled
    }

    async fn settle_in_background(&self, ticket: &KeyClaim, last: &KeySettleAction) {
        let (mut pause, most) = PAUSES;
        let mut left = LAST_WORD_FOR;
        let mut heard = None;
        while heard.is_none() && left > Duration::ZERO {
            tokio::time::sleep(pause).await;
            left = left.saturating_sub(pause);
            pause = (pause * 2).min(most);
            let said =
                tokio::time::timeout(ticket.policy.store_patience, self.try_settle(ticket, last)).await;
            heard = said.ok().and_then(Result::ok);
        }
        self.0.local_claims.forget(&ticket.record_key, ticket.token);
        self.0.waiters.notify(&ticket.record_key);
        let key = ticket.name.key.redacted();
        match heard {
            Some(true) => {}
            // The first attempt may have succeeded, and only its reply was lost.
            Some(false) if self.is_still_ours(ticket, last).await => {}
            Some(false) => {
                Event::LeaseLost.count();
                tracing::warn!(%key, "the outcome of a request was not saved: another request has taken over its key");
            }
            None => {
                tracing::error!(%key, "the outcome of a request was not saved: the store was unavailable for too long");
            }
        }
    }

    async fn is_still_ours(&self, ticket: &KeyClaim, last: &KeySettleAction) -> bool {
        let look = self.0.store.get_record(&ticket.record_key);
        let found = self.with_timeout(ticket, "read a key", look).await.ok().flatten();
        match last {
            KeySettleAction::Free => found.is_none_or(|record| record.token != ticket.token),
            KeySettleAction::Answer(_) | KeySettleAction::Lapse => {
                found.is_none_or(|record| record.token == ticket.token)
            }
        }
    }

    fn try_settle<'a>(&'a self, ticket: &'a KeyClaim, last: &KeySettleAction) -> StoreFuture<'a, bool> {
        let (store, name, token) = (&self.0.store, &ticket.record_key, ticket.token);
        match last {
            KeySettleAction::Answer(bytes) => store.complete_record(name, token, bytes.clone()),
            KeySettleAction::Free => store.release_record(name, token),
            KeySettleAction::Lapse => store.renew_record(name, token, Duration::ZERO),
        }
    }
}
