//! Access to the store with a timeout: claims, renews and settles keys. It does not know what the
//! handler does meanwhile.

mod settle;

pub(crate) use settle::{KeySettleAction, KeySettleOutcome};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::record::{HolderToken, RecordClaim, RecordClaimOutcome, RecordStage};
use tidegate_encoding::AcceptEncoding;
use tidegate_store::{SharedState, StoreFuture};
use tokio_util::task::TaskTracker;

use crate::counters::{self, Event, HitCounter};
use crate::fingerprint::Differences;
use crate::local_claims::{LocalClaimState, LocalClaims};
use crate::name::RecordName;
use crate::policy::Policy;
use crate::request_body::BodyBudget;
use crate::saved_response::{
    ResponseBinding, ResponseDecodeError, SavedResponse, SealingKeys, decode, encode,
};
use crate::waiters::KeyWaiters;

/// The pause before a failed renewal of a claim is retried.
const SOON: Duration = Duration::from_millis(500);

/// The store of keys and the state shared by its requests. Layers with different policies may share
/// one.
#[derive(Clone)]
pub struct KeyStore(Arc<Inner>, BodyBudget);

struct Inner {
    store: Arc<dyn SharedState>,
    seal: Option<SealingKeys>,
    waiters: KeyWaiters,
    local_claims: LocalClaims,
    tasks: TaskTracker,
    hits: HitCounter,
}

/// One request's claim on one key.
pub(crate) struct KeyClaim {
    pub(crate) name: RecordName,
    pub(crate) record_key: String,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) token: HolderToken,
    pub(crate) policy: Arc<Policy>,
    /// The encodings that the client of this request accepts.
    pub(crate) accepts: AcceptEncoding,
}

/// The store's response to a claim.
pub(crate) enum ClaimOutcome {
    Yours {
        /// Whether another request held it before, and may have done its work.
        taken_over: bool,
    },
    Answered(Result<SavedResponse, ResponseDecodeError>),
    Processing,
    Unknown,
    Conflict(Differences),
}

/// The store failed, or did not respond in time.
pub(crate) struct StoreUnavailable;

impl KeyStore {
    /// Creates a key store that saves responses in plain form.
    #[must_use]
    pub fn new(store: Arc<dyn SharedState>) -> Self {
        Self::with(store, None)
    }

    /// Creates a key store that saves responses sealed.
    #[must_use]
    pub fn sealed(store: Arc<dyn SharedState>, seal: SealingKeys) -> Self {
        Self::with(store, Some(seal))
    }

    fn with(store: Arc<dyn SharedState>, seal: Option<SealingKeys>) -> Self {
        let inner = Inner {
            store,
            seal,
            waiters: KeyWaiters::default(),
            local_claims: LocalClaims::default(),
            tasks: TaskTracker::new(),
            hits: HitCounter::default(),
        };
        Self(Arc::new(inner), BodyBudget::default())
    }

    /// Limits the bytes of request bodies that are held at once, over all layers that share this
    /// key store; the default is [`BODIES_MAX_DEFAULT`](crate::BODIES_MAX_DEFAULT). A request that
    /// finds no room in time is rejected.
    #[must_use]
    pub fn with_bodies_max(self, bytes: usize) -> Self {
        Self(self.0, BodyBudget::new(bytes))
    }

    pub(crate) fn body_budget(&self) -> &BodyBudget {
        &self.1
    }

    /// Waits until every running handler has ended and its response is saved. New requests are
    /// still accepted: stop them first.
    pub async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }

    pub(crate) fn store(&self) -> &Arc<dyn SharedState> {
        &self.0.store
    }

    pub(crate) fn hits(&self) -> &HitCounter {
        &self.0.hits
    }

    pub(crate) fn waiters(&self) -> &KeyWaiters {
        &self.0.waiters
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Claims the key. A claim with an unknown outcome is retried once, which is safe: it is the
    /// same claim.
    pub(crate) async fn claim(&self, ticket: &KeyClaim) -> Result<ClaimOutcome, StoreUnavailable> {
        if let Some((fingerprint, known)) = self.0.local_claims.find(&ticket.record_key) {
            return Ok(match known {
                _ if fingerprint != ticket.fingerprint => {
                    ClaimOutcome::Conflict(Differences::between(&fingerprint, &ticket.fingerprint))
                }
                LocalClaimState::InWork => ClaimOutcome::Processing,
                LocalClaimState::Answered(bytes) => {
                    ClaimOutcome::Answered(self.decode_response(ticket, bytes))
                }
            });
        }
        let claim = RecordClaim {
            fingerprint: ticket.fingerprint,
            token: ticket.token,
            lease: ticket.policy.lease,
            ttl: ticket.policy.ttl,
            on_lapse: ticket.policy.on_lapse(),
        };
        let ask = || self.0.store.claim_record(&ticket.record_key, claim);
        let claimed = match self.with_timeout(ticket, "claim a key", ask()).await {
            Ok(claimed) => claimed,
            Err(StoreUnavailable) => self.with_timeout(ticket, "claim a key again", ask()).await?,
        };
        Ok(match claimed {
            RecordClaimOutcome::Granted { taken_over } => {
                if taken_over {
                    Event::TakenOver.count();
                }
                ClaimOutcome::Yours { taken_over }
            }
            RecordClaimOutcome::Completed(bytes) => {
                ClaimOutcome::Answered(self.decode_response(ticket, bytes))
            }
            RecordClaimOutcome::Processing { .. } => ClaimOutcome::Processing,
            RecordClaimOutcome::Unknown => ClaimOutcome::Unknown,
            RecordClaimOutcome::Conflict => ClaimOutcome::Conflict(self.differences(ticket).await),
        })
    }

    /// Renews the claim until it is lost or has been held for as long as a handler may run; then
    /// waits for ever. While the store is unavailable, this process remembers that the request is
    /// in flight.
    pub(crate) async fn renew_until_lost(&self, ticket: &KeyClaim) {
        let every = ticket.policy.lease / 3;
        let (mut pause, mut kept_for) = (every, Duration::ZERO);
        let mut why = "a handler has exceeded its maximum run time; its key is no longer held for it";
        while kept_for + pause <= ticket.policy.run_max {
            tokio::time::sleep(pause).await;
            kept_for += pause;
            let renew = self.0.store.renew_record(&ticket.record_key, ticket.token, ticket.policy.lease);
            match self.with_timeout(ticket, "renew a key", renew).await {
                Ok(true) => {
                    self.0.local_claims.forget(&ticket.record_key, ticket.token);
                    pause = every;
                }
                Ok(false) => {
                    why = "another request has taken over the key of one that is still running";
                    break;
                }
                Err(StoreUnavailable) => {
                    self.0.local_claims.note(
                        &ticket.record_key,
                        ticket.token,
                        ticket.fingerprint,
                        LocalClaimState::InWork,
                    );
                    pause = every.min(SOON);
                }
            }
        }
        self.0.local_claims.forget(&ticket.record_key, ticket.token);
        Event::LeaseLost.count();
        tracing::warn!(key = %ticket.name.key.redacted(), "{why}");
        std::future::pending::<()>().await;
    }

    /// Encodes a response to save; `None` when it cannot be sealed.
    pub(crate) fn encode_response(&self, ticket: &KeyClaim, kept: &SavedResponse) -> Option<Bytes> {
        encode(kept, &bound(ticket), self.0.seal.as_ref())
    }

    fn decode_response(&self, ticket: &KeyClaim, bytes: Bytes) -> Result<SavedResponse, ResponseDecodeError> {
        decode(bytes, &bound(ticket), self.0.seal.as_ref())
    }

    /// Encodes a response for a record of this name; `None` when it cannot be sealed.
    pub(crate) fn write_kept(
        &self,
        name: &str,
        fingerprint: &[u8; 32],
        kept: &SavedResponse,
    ) -> Option<Bytes> {
        encode(kept, &ResponseBinding { name, fingerprint }, self.0.seal.as_ref())
    }

    /// Decodes the response saved under this name, for administration.
    pub(crate) fn read_kept(
        &self,
        name: &str,
        fingerprint: &[u8; 32],
        bytes: Bytes,
    ) -> Result<SavedResponse, ResponseDecodeError> {
        decode(bytes, &ResponseBinding { name, fingerprint }, self.0.seal.as_ref())
    }

    /// The parts in which a request differs from the one that has its key, as far as that is still
    /// stored.
    async fn differences(&self, ticket: &KeyClaim) -> Differences {
        let look = self.0.store.get_record(&ticket.record_key);
        let found = self.with_timeout(ticket, "read a key", look).await.ok().flatten();
        found.map_or(Differences::NONE, |record| {
            Differences::between(&record.fingerprint, &ticket.fingerprint)
        })
    }

    /// The response of the request that took the key over, if there is one by now.
    pub(crate) async fn response_of_new_owner(&self, ticket: &KeyClaim) -> Option<SavedResponse> {
        let look = self.0.store.get_record(&ticket.record_key);
        let record = self.with_timeout(ticket, "read a key", look).await.ok()??;
        match record.stage {
            RecordStage::Completed(bytes) if record.fingerprint == ticket.fingerprint => {
                self.decode_response(ticket, bytes).ok()
            }
            _ => None,
        }
    }

    async fn with_timeout<T>(
        &self,
        ticket: &KeyClaim,
        doing: &str,
        step: StoreFuture<'_, T>,
    ) -> Result<T, StoreUnavailable> {
        match tokio::time::timeout(ticket.policy.store_patience, step).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => {
                counters::count_store_failure(doing, &ticket.name.key, &cause);
                Err(StoreUnavailable)
            }
            Err(_) => {
                counters::count_store_failure(doing, &ticket.name.key, &"the store did not respond in time");
                Err(StoreUnavailable)
            }
        }
    }
}

fn bound(ticket: &KeyClaim) -> ResponseBinding<'_> {
    ResponseBinding { name: &ticket.record_key, fingerprint: &ticket.fingerprint }
}
