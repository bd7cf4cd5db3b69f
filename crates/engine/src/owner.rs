//! The owner of a partition: collects commands, applies them to the model, appends what was decided, and only then
//! answers and lets calls leave. One task; while a batch is being written the next one is applied. When an append
//! fails, what is in memory is dropped and the log is read again: memory and log are never apart.

mod apply;
mod batch;
mod books;
mod finish;
mod recover;
mod run;
mod tenure;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tidegate_core::fact::Shape;
use tidegate_core::{Fence, Model, Seq};
use tidegate_store::Store;
use tidegate_store::log::{Lsn, Ownership};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use apply::{refused, tokens};
pub(crate) use batch::Building;
pub(crate) use batch::Reply;
pub(crate) use books::Books;
pub(crate) use recover::{Replayed, replay};

use crate::carry::{Carrier, Report};
use crate::chance::Chance;
use crate::clock::SteadyClock;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::options::Options;
use crate::payloads::Payloads;
use crate::prepare::Prepared;
use crate::submission::Receipt;

/// What one acceptance gets: a receipt, or that an earlier operation answers it.
#[derive(Clone, Debug)]
pub(crate) enum Accepted {
    New(Receipt),
    Earlier(Seq),
    Conflict(Seq),
}

/// Answers to one command's submissions, in order.
pub(crate) type AcceptReply = oneshot::Sender<Vec<Result<Accepted>>>;

/// A question to the owner, and how it is answered.
pub(crate) type Look = Box<dyn FnOnce(&Owner) -> batch::Tell + Send>;

/// What the owner is asked to do.
pub(crate) enum Command {
    /// Accept these, each for itself.
    Accept(Vec<Prepared>, AcceptReply),
    /// An attempt has ended.
    Settle(Report),
    /// A question: what to answer once everything before it is durable. Answered at once while the log is out of
    /// reach, because that is when people look.
    Look(Look),
    /// An order. One that cannot be taken is dropped, which the caller notices.
    Ask(Box<dyn FnOnce(&mut Owner) + Send>),
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

/// A call under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub fence: Fence,
    pub stop: CancellationToken,
}

/// The owner's state. Everything but `model` and `building` outlives a recovery.
pub(crate) struct Owner {
    pub(crate) model: Model,
    pub(crate) building: Building,
    pub(crate) clock: SteadyClock,
    pub(crate) events: Arc<Events>,
    pub(crate) waiters: FxHashMap<Seq, Vec<oneshot::Sender<()>>>,
    /// Tells the archiver that something ended.
    pub(crate) ended: Arc<Notify>,
    pub(crate) running: FxHashMap<Seq, Running>,
    pub(crate) store: Arc<dyn Store>,
    /// The right to append, as it stands; a recovery begins a new one.
    pub(crate) tenure: watch::Sender<Ownership>,
    pub(crate) limits: Vec<(Arc<str>, Shape)>,
    /// Who is told how limits stand.
    pub(crate) books: Option<Books>,
    pub(crate) carrier: Carrier,
    pub(crate) payloads: Arc<Payloads>,
    pub(crate) options: Options,
    pub(crate) chance: Chance,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) reports: mpsc::UnboundedReceiver<Report>,
    pub(crate) report: mpsc::UnboundedSender<Report>,
    /// Reports that a failed append took down with it.
    pub(crate) unsettled: Vec<Report>,
    pub(crate) draining: Option<Drain>,
    /// Whether every handle is gone.
    pub(crate) abandoned: bool,
    /// The last append that was sent.
    pub(crate) last_sent: Lsn,
    /// Whether the last claims were given back because they were durable too late.
    pub(crate) gave_back: bool,
    /// Claims in batches that are being written.
    pub(crate) leaving: usize,
    /// Claims of batches that may or may not stand, whose calls have not left.
    pub(crate) never_left: FxHashSet<(Seq, Fence)>,
    pub(crate) facts_since_snapshot: u64,
    pub(crate) snapshot_under_way: Arc<std::sync::atomic::AtomicBool>,
    pub(crate) stopped: watch::Sender<Option<Error>>,
}
