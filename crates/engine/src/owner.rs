//! The owner of a partition: collects commands, applies them to the model, appends what was decided, and only then
//! answers and lets calls leave. One task; while a batch is being written the next one is applied. When an append
//! fails, what is in memory is dropped and the log is read again: memory and log are never apart.

mod apply;
mod batch;
mod finish;
mod lease_renewal;
mod limit_reporter;
mod read_ahead;
mod recover;
mod run;
mod send;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::Claim;
use tidegate_core::{Model, Seq};
use tidegate_store::Store;
use tidegate_store::log::{Lsn, Ownership, StoredOperation};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

pub(crate) use apply::{format_tokens, refusal_error};
pub(crate) use batch::OpenBatch;
pub(crate) use batch::Reply;
pub(crate) use limit_reporter::LimitReporter;
pub(crate) use read_ahead::{ReadAhead, ReadAheadOutcome};
pub(crate) use recover::{ReplayedPartition, replay};

use crate::calls::Calls;
use crate::carry::Carrier;
use crate::clock::EngineClock;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::options::Options;
use crate::payloads::Payloads;
use crate::prepare::PreparedSubmission;
use crate::rng::JitterRng;
use crate::submission::Receipt;

/// What one acceptance gets: a receipt, or that an earlier operation answers it.
#[derive(Clone, Debug)]
pub(crate) enum AcceptDecision {
    New(Receipt),
    Earlier(Seq),
    Conflict(Seq),
}

/// Answers to one command's submissions, in order.
pub(crate) type AcceptReply = oneshot::Sender<Vec<Result<AcceptDecision>>>;

/// A question to the owner, and how it is answered.
pub(crate) type OwnerQuery = Box<dyn FnOnce(&Owner) -> batch::BatchCallback + Send>;

/// What the owner is asked to do.
pub(crate) enum Command {
    /// Accept these, each for itself.
    Accept(Vec<PreparedSubmission>, AcceptReply),
    /// A question: what to answer once everything before it is durable. Answered at once while the log is out of
    /// reach, because that is when people look.
    Query(OwnerQuery),
    /// An order. One that cannot be taken is dropped, which the caller notices.
    Update(Box<dyn FnOnce(&mut Owner) + Send>),
    /// Take no more; answered when nothing runs.
    Drain(Drain),
}

/// An order to stop.
pub(crate) struct Drain {
    /// Told when nothing runs and the partition is given up.
    pub done: oneshot::Sender<()>,
    /// Whether operations are accepted for as long as something runs.
    pub accepts: bool,
}

/// The owner's state. Everything but `model`, `building`, `payloads` and `ahead` outlives a recovery.
pub(crate) struct Owner {
    pub(crate) model: Model,
    pub(crate) building: OpenBatch,
    pub(crate) clock: EngineClock,
    pub(crate) events: Arc<Events>,
    pub(crate) waiters: FxHashMap<Seq, Vec<oneshot::Sender<()>>>,
    /// Tells the archiver that something ended.
    pub(crate) ended: Arc<Notify>,
    /// Calls in flight and about to leave, and what came of them.
    pub(crate) calls: Calls,
    /// Durable claims that leave when the partition's lease was renewed.
    pub(crate) held_back: Vec<(Claim, StoredOperation)>,
    pub(crate) store: Arc<dyn Store>,
    /// The right to append, as it stands; a recovery begins a new one.
    pub(crate) ownership: watch::Sender<Ownership>,
    /// Until then no other node can own the partition.
    pub(crate) owned_until: Instant,
    /// Whether the last renewal failed.
    pub(crate) lease_unrenewed: bool,
    pub(crate) limits: Vec<(Arc<str>, LimitShape)>,
    /// Who is told how limits stand.
    pub(crate) limit_reporter: Option<LimitReporter>,
    pub(crate) carrier: Carrier,
    pub(crate) payloads: Payloads,
    /// How reading payloads ahead of need stands.
    pub(crate) ahead: ReadAhead,
    pub(crate) options: Options,
    pub(crate) chance: JitterRng,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) draining: Option<Drain>,
    /// Whether every handle is gone.
    pub(crate) abandoned: bool,
    /// The last append that was sent.
    pub(crate) last_sent: Lsn,
    pub(crate) facts_since_snapshot: u64,
    pub(crate) snapshot_under_way: Arc<std::sync::atomic::AtomicBool>,
    pub(crate) stopped: watch::Sender<Option<Error>>,
}
