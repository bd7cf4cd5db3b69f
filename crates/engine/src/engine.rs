//! The handle that callers hold. Cheap to clone; every method sends a command to the owner or reads
//! the store.

mod builder;
mod commands;
mod complete;
mod early_start;
mod effect;
mod group_commands;
mod jobs;
mod limit_commands;
mod open;
mod outbox;
mod withdraw;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_core::{OperationId, Seq, State};
use tidegate_store::log::Ownership;
use tidegate_store::{Clock, Store};
use tidegate_upstream::Upstream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use builder::EngineBuilder;
pub(crate) use builder::HTTP;
pub use commands::SeenOutcome;
pub use jobs::CurrentAttempt;

use crate::archiver::{Backlog, SharedArchive};
use crate::clock::EngineClock;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Events, Subscription};
use crate::options::Options;
use crate::owner::{AcceptDecision, Command, Drain, Owner, Reply};
use crate::prepare::{PreparedSubmission, prepare};
use crate::seal;
use crate::submission::{Receipt, Submission};
use crate::view::OperationView;
use crate::work::ReadyKinds;

/// How long a drain waits for tasks that use the store after the owner has released it.
const TASKS_END_MAX: Duration = Duration::from_secs(1);

/// How many operations are rerun at once.
const RERUNS_MAX: usize = 64;

/// The executor for each kind.
pub type Executors = BTreeMap<Arc<str>, Arc<dyn Upstream>>;

/// An engine that owns its partition.
#[derive(Clone)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: EngineClock,
    pub(crate) executors: Arc<Executors>,
    pub(crate) options: Arc<Options>,
    commands: mpsc::Sender<Command>,
    events: Arc<Events>,
    stopped: watch::Receiver<Option<Error>>,
    ownership: watch::Receiver<Ownership>,
    give_up: CancellationToken,
    /// The tasks that use the store.
    tasks: TaskTracker,
    /// Held while an operation is rerun, by its number.
    rerun_locks: Arc<[tokio::sync::Mutex<()>; RERUNS_MAX]>,
    ready_kinds: watch::Receiver<ReadyKinds>,
    pub(crate) archived: Option<ArchiveLink>,
}

/// The archive that ended operations are copied to.
#[derive(Clone)]
pub(crate) struct ArchiveLink {
    pub archiving: SharedArchive,
    /// The operations still to be copied.
    pub backlog: watch::Receiver<Backlog>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Submits an operation; returns when its acceptance is durable.
    ///
    /// # Errors
    /// When it is refused, or the store cannot be written.
    pub async fn submit(&self, submission: Submission) -> Result<Receipt> {
        let prepared = prepare(submission, &self.executors, &self.options, self.clock.now())?;
        let request = Request::of(&prepared);
        let mut decided = self.decide(vec![prepared]).await;
        self.receipt(decided.pop().unwrap_or_else(|| Err(stopping_error()))?, request.as_ref()).await
    }

    /// Submits several operations and returns one result for each, in order. The valid ones are
    /// accepted in one step.
    pub async fn submit_all(&self, submissions: Vec<Submission>) -> Vec<Result<Receipt>> {
        let now = self.clock.now();
        let mut prepared = Vec::with_capacity(submissions.len());
        let mut answers: Vec<Option<Error>> = Vec::with_capacity(submissions.len());
        for submission in submissions {
            match prepare(submission, &self.executors, &self.options, now) {
                Ok(ready) => {
                    prepared.push(ready);
                    answers.push(None);
                }
                Err(error) => answers.push(Some(error)),
            }
        }
        let requests: Vec<Option<Request>> = prepared.iter().map(Request::of).collect();
        let mut decided = self.decide(prepared).await.into_iter().zip(requests);
        let mut receipts = Vec::with_capacity(answers.len());
        for refused in answers {
            receipts.push(match refused {
                Some(error) => Err(error),
                None => match decided.next() {
                    Some((Ok(accepted), request)) => self.receipt(accepted, request.as_ref()).await,
                    Some((Err(error), _)) => Err(error),
                    None => Err(stopping_error()),
                },
            });
        }
        receipts
    }

    async fn decide(&self, prepared: Vec<PreparedSubmission>) -> Vec<Result<AcceptDecision>> {
        let count = prepared.len();
        if count == 0 {
            return Vec::new();
        }
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Accept(prepared, reply)).await.is_err() {
            return (0..count).map(|_| Err(self.stop_reason())).collect();
        }
        answer.await.unwrap_or_else(|_| (0..count).map(|_| Err(self.stop_reason())).collect())
    }

    async fn receipt(&self, accepted: AcceptDecision, request: Option<&Request>) -> Result<Receipt> {
        let (accepted, difference) = match accepted {
            AcceptDecision::Conflict(seq) => match self.difference(seq, request).await? {
                None => (AcceptDecision::Earlier(seq), ""),
                Some(field) => (accepted, field),
            },
            accepted => (accepted, ""),
        };
        match accepted {
            AcceptDecision::New(receipt) => Ok(receipt),
            AcceptDecision::Earlier(seq) => {
                let view = self.view(seq).await.map_err(|error| match error.kind {
                    // Accepted operations are kept for longer than their keys are remembered.
                    ErrorKind::NoOperation => Error::new(
                        ErrorKind::StoreUnavailable,
                        "the store does not have an operation that it accepted; try again",
                    ),
                    _ => error,
                })?;
                Ok(Receipt { id: view.id, state: view.state, deduplicated: true })
            }
            AcceptDecision::Conflict(seq) => {
                let view = self.view(seq).await?;
                let (key, id) = (request.map_or("key", |request| request.key_field), view.id);
                let message = format!("The {key} was used before with another {difference}, by {id}.");
                Err(Error::new(ErrorKind::KeyConflict, message).field(key).operation(id))
            }
        }
    }

    /// Names the first field in which a request differs from that of an operation; `None` when it
    /// is the same in a different spelling.
    async fn difference(&self, seq: Seq, request: Option<&Request>) -> Result<Option<&'static str>> {
        let Some(request) = request else { return Ok(None) };
        let stored = self.stored(seq).await?.operation;
        if stored.group != request.group {
            return Ok(Some("group"));
        }
        let executor = self.executors.get(&request.kind).filter(|_| stored.kind == request.kind);
        Ok(executor.map_or(Some("kind"), |executor| executor.difference(&stored.payload, &request.payload)))
    }

    /// Returns an operation in its current state; one that the store no longer has comes from the
    /// archive.
    ///
    /// # Errors
    /// When there is no operation with that id.
    pub async fn get(&self, id: OperationId) -> Result<OperationView> {
        let missing =
            || Error::new(ErrorKind::NoOperation, format!("there is no operation {id}")).operation(id);
        if id.partition() != self.options.partition {
            return Err(missing());
        }
        match self.view(id.seq()).await {
            Ok(view) if view.id == id => Ok(view),
            Err(error) if error.kind != ErrorKind::NoOperation => Err(error),
            _ => self.archived_view(id).await?.ok_or_else(missing),
        }
    }

    /// Returns an operation once it has ended, or in its current state after `most`.
    ///
    /// # Errors
    /// When there is no operation with that id.
    pub async fn wait(&self, id: OperationId, most: Duration) -> Result<OperationView> {
        self.wait_until(id, most, State::is_ended).await
    }

    /// Returns an operation once it has ended or its outcome is unknown, or in its current state
    /// after `most`.
    ///
    /// # Errors
    /// When there is no operation with that id.
    pub async fn wait_for_outcome(&self, id: OperationId, most: Duration) -> Result<OperationView> {
        self.wait_until(id, most, |state| state.is_ended() || state == State::Unknown).await
    }

    async fn wait_until(
        &self,
        id: OperationId,
        most: Duration,
        is_over: fn(State) -> bool,
    ) -> Result<OperationView> {
        let (seq, end) = (id.seq(), Instant::now() + most);
        let mut view = self.get(id).await?;
        while !is_over(view.state) && Instant::now() < end {
            let (waker, woken) = oneshot::channel();
            self.update_owner(move |owner| {
                if owner.model.active(seq).is_some_and(|active| !is_over(active.state)) {
                    let waiters = owner.waiters.entry(seq).or_default();
                    waiters.retain(|waiter| !waiter.is_closed());
                    waiters.push(waker);
                }
            })
            .await?;
            // Woken, dropped or timed out: look again in every case.
            let notified = tokio::time::timeout_at(end, woken).await;
            view = match self.get(id).await {
                // The operation has ended, and so has the engine since: the durable result can be
                // read without it.
                Err(error) if error.kind == ErrorKind::Stopping && matches!(notified, Ok(Ok(()))) => {
                    self.merge(self.stored(seq).await?, None)
                }
                found => found?,
            };
            if !matches!(notified, Ok(Ok(()))) {
                break;
            }
        }
        Ok(view)
    }

    /// The partition it owns.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.options.partition
    }

    /// The ended operations that are not archived yet, as last observed; `None` without an archive.
    #[must_use]
    pub fn backlog(&self) -> Option<Backlog> {
        self.archived.as_ref().map(|archived| *archived.backlog.borrow())
    }

    /// Subscribes to changes from now on, or after the event with this id.
    #[must_use]
    pub fn events(&self, after: Option<u64>) -> Subscription {
        self.events.subscribe(after)
    }

    /// Checks that the engine works: the store can be written and the owner responds.
    ///
    /// # Errors
    /// Returns what does not work.
    pub async fn health(&self) -> Result<()> {
        self.store.health().await?;
        self.update_owner(|_| ()).await
    }

    /// Resolves with the reason when the engine has stopped.
    pub async fn stopped(&self) -> Error {
        let mut stopped = self.stopped.clone();
        match stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_else(stopping_error),
            Err(_) => stopping_error(),
        }
    }

    /// Stops accepting and taking, lets calls in flight finish or returns them, releases the
    /// partition, and lets go of the store, so that it can be opened again once every engine is
    /// dropped.
    pub async fn drain(&self) {
        self.stop(false).await;
        self.tasks.close();
        // What takes longer ends by itself.
        let _ = tokio::time::timeout(TASKS_END_MAX, self.tasks.wait()).await;
    }

    /// Drains a partition that another node takes over: it keeps accepting while calls are in
    /// flight, so that callers wait only for the handoff itself.
    pub async fn hand_over(&self) {
        self.stop(true).await;
    }

    async fn stop(&self, accepts: bool) {
        let (done, mut drained) = oneshot::channel();
        if self.commands.send(Command::Drain(Drain { done, accepts })).await.is_err() {
            return;
        }
        if tokio::time::timeout(self.options.drain, &mut drained).await.is_err() {
            self.give_up.cancel();
            // Either the drain is complete, or the owner is gone.
            let _ = drained.await;
        }
    }

    /// Sends a command to the owner; resolves once everything decided before it is durable.
    pub(crate) async fn update_owner<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Owner) -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let ask = Command::Update(Box::new(move |owner: &mut Owner| {
            let value = question(owner);
            owner.building.replies.push(Reply::Other(Box::new(move |stands| {
                // The caller may be gone.
                let _ = reply.send(stands.map(|()| value).map_err(Error::clone));
            })));
        }));
        self.commands.send(ask).await.map_err(|_| self.stop_reason())?;
        answer.await.unwrap_or_else(|_| Err(self.stop_reason()))
    }

    /// Sends a query to the owner; resolves once everything decided before it is durable.
    pub(crate) async fn query_owner<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Owner) -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let look = Command::Query(Box::new(move |owner: &Owner| {
            let value = question(owner);
            Box::new(move |stands| {
                // The caller may be gone.
                let _ = reply.send(stands.map(|()| value).map_err(Error::clone));
            })
        }));
        self.commands.send(look).await.map_err(|_| self.stop_reason())?;
        answer.await.unwrap_or_else(|_| Err(self.stop_reason()))
    }

    fn stop_reason(&self) -> Error {
        self.stopped.borrow().clone().unwrap_or_else(|| {
            Error::new(ErrorKind::StoreUnavailable, "the store cannot be written now; try again in a moment")
        })
    }

    pub(crate) async fn stored(&self, seq: Seq) -> Result<tidegate_store::log::StoredEntry> {
        let mut found = self.store.read(self.options.partition, vec![seq]).await?;
        let stored = found.pop().flatten();
        let stored =
            stored.ok_or_else(|| Error::new(ErrorKind::NoOperation, "there is no such operation"))?;
        seal::check(&stored.operation)?;
        Ok(stored)
    }
}

/// What two submissions under one key must have in common.
struct Request {
    group: Arc<str>,
    kind: Arc<str>,
    payload: bytes::Bytes,
    /// Where its key was given.
    key_field: &'static str,
}

impl Request {
    /// The request of a submission, if it has a key.
    fn of(prepared: &PreparedSubmission) -> Option<Self> {
        prepared.draft.dedupe.as_ref()?;
        let (group, kind) = (Arc::clone(&prepared.draft.group), Arc::clone(&prepared.draft.kind));
        let key_field = if prepared.key.is_some() { "dedupe_key" } else { "Idempotency-Key" };
        Some(Self { group, kind, payload: prepared.payload.clone(), key_field })
    }
}

fn stopping_error() -> Error {
    Error::new(ErrorKind::Stopping, "the engine is stopping")
}
