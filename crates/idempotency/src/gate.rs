//! The store behind a bound of patience: a key is claimed, kept and settled here. What the handler does meanwhile is not known
//! here.

mod last;

pub(crate) use last::{Last, Settled};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::record::{Claim, Claimed, Stage, Token};
use tidegate_encoding::AcceptEncoding;
use tidegate_store::{Answer, Shared};
use tokio_util::task::TaskTracker;

use crate::answer::{Bound, Damaged, Kept, Seal, decode, encode};
use crate::fingerprint::Differences;
use crate::here::{Here, Known};
use crate::intake::Room;
use crate::name::Name;
use crate::policy::Policy;
use crate::tally::{self, Event};
use crate::waiting::Waiting;

/// The pause before a claim is renewed again that could not be.
const SOON: Duration = Duration::from_millis(500);

/// Where keys are kept, and what works behind them. Layers with different policies may share one.
#[derive(Clone)]
pub struct Gate(Arc<Inner>, Room);

struct Inner {
    store: Arc<dyn Shared>,
    seal: Option<Seal>,
    waiting: Waiting,
    here: Here,
    tasks: TaskTracker,
}

/// One request's claim on one key.
pub(crate) struct Ticket {
    pub(crate) name: Name,
    pub(crate) kept_as: String,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) token: Token,
    pub(crate) policy: Arc<Policy>,
    /// What the client of this request can read.
    pub(crate) accepts: AcceptEncoding,
}

/// What the store says of a claim.
pub(crate) enum Turn {
    Yours,
    Answered(Result<Kept, Damaged>),
    Processing,
    Unknown,
    Conflict(Differences),
}

/// The store did not answer, or not in time.
pub(crate) struct Away;

impl Gate {
    /// Keeps keys in a store, their answers in clear.
    #[must_use]
    pub fn new(store: Arc<dyn Shared>) -> Self {
        Self::with(store, None)
    }

    /// Keeps keys in a store, their answers sealed.
    #[must_use]
    pub fn sealed(store: Arc<dyn Shared>, seal: Seal) -> Self {
        Self::with(store, Some(seal))
    }

    fn with(store: Arc<dyn Shared>, seal: Option<Seal>) -> Self {
        let (waiting, tasks) = (Waiting::default(), TaskTracker::new());
        Self(Arc::new(Inner { store, seal, waiting, here: Here::default(), tasks }), Room::default())
    }

    /// Holds no more than so many bytes of request bodies at once, over all layers that get this gate; it is
    /// [`BODIES_MAX_DEFAULT`](crate::BODIES_MAX_DEFAULT) otherwise. A request that finds no room in time is refused.
    #[must_use]
    pub fn with_bodies_max(self, bytes: usize) -> Self {
        Self(self.0, Room::new(bytes))
    }

    pub(crate) fn room(&self) -> &Room {
        &self.1
    }

    /// Waits until every handler that was begun has ended and its answer is kept. New requests are still taken: stop
    /// them before.
    pub async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }

    pub(crate) fn store(&self) -> &Arc<dyn Shared> {
        &self.0.store
    }

    pub(crate) fn waiting(&self) -> &Waiting {
        &self.0.waiting
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Claims the key. A claim whose fate is not known is tried once more, which is safe: it is the same claim.
    pub(crate) async fn claim(&self, ticket: &Ticket) -> Result<Turn, Away> {
        if let Some((fingerprint, known)) = self.0.here.known(&ticket.kept_as) {
            return Ok(match known {
                _ if fingerprint != ticket.fingerprint => {
                    Turn::Conflict(Differences::between(&fingerprint, &ticket.fingerprint))
                }
                Known::InWork => Turn::Processing,
                Known::Answered(bytes) => Turn::Answered(self.read(ticket, bytes)),
            });
        }
        let claim = Claim {
            fingerprint: ticket.fingerprint,
            token: ticket.token,
            lease: ticket.policy.lease,
            ttl: ticket.policy.ttl,
            on_lapse: ticket.policy.on_lapse(),
        };
        let ask = || self.0.store.claim_record(&ticket.kept_as, claim);
        let claimed = match self.in_time(ticket, "claim a key", ask()).await {
            Ok(claimed) => claimed,
            Err(Away) => self.in_time(ticket, "claim a key again", ask()).await?,
        };
        Ok(match claimed {
            Claimed::Yours { taken_over } => {
                if taken_over {
                    Event::TakenOver.count();
                }
                Turn::Yours
            }
            Claimed::Completed(bytes) => Turn::Answered(self.read(ticket, bytes)),
            Claimed::Processing { .. } => Turn::Processing,
            Claimed::Unknown => Turn::Unknown,
            Claimed::Conflict => Turn::Conflict(self.differences(ticket).await),
        })
    }

    /// Renews the claim until it is lost or has been kept as long as a handler may work; then waits for ever. While the
    /// store does not hear of it, this process does not forget that the request is in work.
    pub(crate) async fn keep(&self, ticket: &Ticket) {
        let every = ticket.policy.lease / 3;
        let (mut pause, mut kept_for) = (every, Duration::ZERO);
        let mut why = "a handler works for longer than it may; its key is not kept for it any longer";
        while kept_for + pause <= ticket.policy.run_max {
            tokio::time::sleep(pause).await;
            kept_for += pause;
            let renew = self.0.store.renew_record(&ticket.kept_as, ticket.token, ticket.policy.lease);
            match self.in_time(ticket, "keep a key", renew).await {
                Ok(true) => {
                    self.0.here.forget(&ticket.kept_as, ticket.token);
                    pause = every;
                }
                Ok(false) => {
                    why = "another request has the key of one still at work";
                    break;
                }
                Err(Away) => {
                    self.0.here.note(&ticket.kept_as, ticket.token, ticket.fingerprint, Known::InWork);
                    pause = every.min(SOON);
                }
            }
        }
        self.0.here.forget(&ticket.kept_as, ticket.token);
        Event::LeaseLost.count();
        tracing::warn!(key = %ticket.name.key.shadow(), "{why}");
        std::future::pending::<()>().await;
    }

    /// The bytes of an answer to keep; `None` when they cannot be sealed.
    pub(crate) fn write(&self, ticket: &Ticket, kept: &Kept) -> Option<Bytes> {
        encode(kept, &bound(ticket), self.0.seal.as_ref())
    }

    fn read(&self, ticket: &Ticket, bytes: Bytes) -> Result<Kept, Damaged> {
        decode(bytes, &bound(ticket), self.0.seal.as_ref())
    }

    /// The bytes of an answer for a record of this name; `None` when they cannot be sealed.
    pub(crate) fn write_kept(&self, name: &str, fingerprint: &[u8; 32], kept: &Kept) -> Option<Bytes> {
        encode(kept, &Bound { name, fingerprint }, self.0.seal.as_ref())
    }

    /// What a record of this name keeps, for those who look into it.
    pub(crate) fn read_kept(
        &self,
        name: &str,
        fingerprint: &[u8; 32],
        bytes: Bytes,
    ) -> Result<Kept, Damaged> {
        decode(bytes, &Bound { name, fingerprint }, self.0.seal.as_ref())
    }

    /// In what a request differs from the one that has its key, as far as that is still there.
    async fn differences(&self, ticket: &Ticket) -> Differences {
        let look = self.0.store.look_record(&ticket.kept_as);
        let found = self.in_time(ticket, "look at a key", look).await.ok().flatten();
        found.map_or(Differences::NONE, |record| {
            Differences::between(&record.fingerprint, &ticket.fingerprint)
        })
    }

    /// The answer that the one who took the key over has given by now.
    pub(crate) async fn answer_of_another(&self, ticket: &Ticket) -> Option<Kept> {
        let look = self.0.store.look_record(&ticket.kept_as);
        let record = self.in_time(ticket, "look at a key", look).await.ok()??;
        match record.stage {
            Stage::Completed(bytes) if record.fingerprint == ticket.fingerprint => {
                self.read(ticket, bytes).ok()
            }
            _ => None,
        }
    }

    async fn in_time<T>(&self, ticket: &Ticket, doing: &str, step: Answer<'_, T>) -> Result<T, Away> {
        match tokio::time::timeout(ticket.policy.store_patience, step).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => {
                tally::store_failed(doing, &ticket.name.key, &cause);
                Err(Away)
            }
            Err(_) => {
                tally::store_failed(doing, &ticket.name.key, &"the store did not answer in time");
                Err(Away)
            }
        }
    }
}

fn bound(ticket: &Ticket) -> Bound<'_> {
    Bound { name: &ticket.kept_as, fingerprint: &ticket.fingerprint }
}
