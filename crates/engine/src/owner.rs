//! The owner of a partition: collects commands, applies them to the model, appends the decisions,
//! and only then replies and sends calls. It is one task; while a batch is being written the next
//! one is applied. When an append fails, the state in memory is dropped and the log is replayed:
//! memory and log never diverge.

mod apply;
mod attempts;
mod batch;
mod batch_share;
mod finish;
mod gather;
mod hand_out;
mod journeys;
mod lease_renewal;
mod limit_reporter;
mod read_ahead;
mod recover;
mod run;
mod send;
mod spare_lists;
mod unconfigured;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tidegate_core::fact::LimitShape;
use tidegate_core::{Model, Seq, Time};
use tidegate_store::Store;
use tidegate_store::log::{Lsn, Ownership};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub(crate) use apply::{format_tokens, refusal_error};
pub(crate) use batch::OpenBatch;
pub(crate) use batch::Reply;
pub(crate) use batch_share::BatchShare;
pub(crate) use hand_out::{HandOut, Taker};
pub(crate) use limit_reporter::LimitReporter;
pub(crate) use read_ahead::{ReadAhead, ReadAheadOutcome};
pub(crate) use recover::{ReplayedPartition, replay};
pub(crate) use send::FetchedClaim;
use spare_lists::SpareLists;

use crate::calls::Calls;
use crate::carry::{Carrier, ReadyCall};
use crate::clock::EngineClock;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::figures::AttemptSeries;
use crate::journey::Journeys;
use crate::load::LimitClosings;
use crate::options::Options;
use crate::payloads::Payloads;
use crate::prepare::PreparedSubmission;
use crate::rng::JitterRng;
use crate::submission::Receipt;
use crate::work::ReadyKinds;

/// The decision on one submission: a receipt, or a reference to an earlier operation.
#[derive(Clone, Debug)]
pub(crate) enum AcceptDecision {
    New(Receipt),
    Earlier(Seq),
    Conflict(Seq),
}

/// The replies to one command's submissions, in order.
pub(crate) type AcceptReply = oneshot::Sender<Vec<Result<AcceptDecision>>>;

/// A query to the owner, and how to reply.
pub(crate) type OwnerQuery = Box<dyn FnOnce(&Owner) -> batch::BatchCallback + Send>;

/// A command to the owner.
pub(crate) enum Command {
    /// Accept these, each on its own.
    Accept(Vec<PreparedSubmission>, AcceptReply),
    /// A query: answered once everything before it is durable. Answered at once while the log is
    /// unavailable, because that is when people look.
    Query(OwnerQuery),
    /// An update. One that cannot be applied is dropped, which the caller notices.
    Update(Box<dyn FnOnce(&mut Owner) + Send>),
    /// Take no more; answered when nothing runs.
    Drain(Drain),
}

/// A command to stop.
pub(crate) struct Drain {
    /// Notified when nothing runs and the partition is released.
    pub done: oneshot::Sender<()>,
    /// Whether operations are accepted while something runs.
    pub accepts: bool,
}

/// The owner's state. Everything but `model`, `building`, `payloads` and `ahead` outlives a
/// recovery.
pub(crate) struct Owner {
    pub(crate) model: Model,
    pub(crate) building: OpenBatch,
    /// How many commands the next batch takes.
    pub(crate) share: BatchShare,
    /// Lists of finished batches, for the next ones.
    pub(crate) spare: Vec<SpareLists>,
    pub(crate) clock: EngineClock,
    pub(crate) events: Arc<Events>,
    /// The ways of the last operations.
    pub(crate) journeys: Journeys,
    pub(crate) waiters: FxHashMap<Seq, Vec<oneshot::Sender<()>>>,
    /// Notifies the archiver that an operation ended.
    pub(crate) ended: Arc<Notify>,
    /// Calls in flight and about to be sent, and their reports.
    pub(crate) calls: Calls,
    /// Durable claims whose calls are sent once the partition's lease is renewed.
    pub(crate) held_back: Vec<ReadyCall>,
    /// Durable claims of remote workers that wait for the same.
    pub(crate) held_back_work: Vec<HandOut>,
    /// The number of callers whose claims are being read for them.
    pub(crate) handing_out: usize,
    /// When a remote worker asked for each kind, as far as this owner knows.
    pub(crate) asked: FxHashMap<Arc<str>, Time>,
    /// The kinds that are left to remote workers.
    pub(crate) remote_kinds: Arc<[Arc<str>]>,
    /// Those of them of which an operation may be claimed now.
    pub(crate) ready_kinds: watch::Sender<ReadyKinds>,
    /// The attempts that an upstream throttled, since this process became the owner.
    pub(crate) throttled: u64,
    /// The metrics that attempts are counted in.
    pub(crate) series: AttemptSeries,
    /// How often throttled calls closed each limit.
    pub(crate) closings: LimitClosings,
    /// When this process became the owner.
    pub(crate) owner_since: Time,
    pub(crate) store: Arc<dyn Store>,
    /// The current right to append; a recovery starts a new one.
    pub(crate) ownership: watch::Sender<Ownership>,
    /// Until then no other node can own the partition.
    pub(crate) owned_until: Instant,
    pub(crate) limits: Vec<(Arc<str>, LimitShape)>,
    /// Reports the state of limits.
    pub(crate) limit_reporter: Option<LimitReporter>,
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) payloads: Payloads,
    /// The state of read-ahead.
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
    /// What uses the store in the background.
    pub(crate) tasks: TaskTracker,
    pub(crate) stopped: watch::Sender<Option<Error>>,
}
