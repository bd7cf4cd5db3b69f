//! The owner's loop. A batch is written as soon as the log can take another append, and collects
//! commands until then; there is no timer. Each append names the one it follows, so that none
//! succeeds when the one before it failed.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::{Clock, Store, StoreErrorKind, codec};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::batch::SealedBatch;
use super::batch_share::BatchShare;
use super::lease_renewal::Renewal;
use super::{Drain, Owner};
use crate::error::Error;

/// An append in flight.
type AppendFuture = Pin<Box<dyn Future<Output = tidegate_store::Result<Lsn>> + Send>>;

/// Batches that are being written, in order.
#[derive(Default)]
struct PendingAppends {
    appends: FuturesOrdered<AppendFuture>,
    sealed: VecDeque<SealedBatch>,
}

/// How long the last reports of a drain that timed out may take to be written.
const LAST_WRITES: Duration = Duration::from_secs(2);
/// How long the store may take to release the partition.
const RELEASE_MAX: Duration = Duration::from_secs(2);
/// The size of one part of a snapshot, in bytes.
const SNAPSHOT_PART_LEN: usize = 1024 * 1024;
/// A snapshot is worthwhile when the log is this many times longer than the snapshot.
const SNAPSHOT_WORTH: u64 = 2;

/// Why the loop ended.
pub(super) enum LoopExit {
    /// The drain is complete.
    Drained,
    /// The log could not be written: the state in memory must be rebuilt.
    Lost(tidegate_store::Error),
}

impl Owner {
    /// Runs until the engine is drained or the log fails for good. Then the calls in flight are
    /// kept for the next engine of this process, if there is one.
    pub(crate) async fn work(mut self) {
        let give_up = self.calls.give_up.clone();
        let ended = tokio::select! {
            ended = self.work_until_stopped() => ended,
            () = async { give_up.cancelled().await; tokio::time::sleep(LAST_WRITES).await } => {
                Err(Error::new(crate::error::ErrorKind::StoreUnavailable, "the store did not respond in time"))
            }
        };
        let reason = match ended {
            Ok(()) => {
                release(&*self.store, self.ownership()).await;
                Error::new(crate::error::ErrorKind::Stopping, "the engine has stopped")
            }
            Err(error) => {
                self.log_unfinished(&error);
                error
            }
        };
        let Self { calls, options, draining, stopped, .. } = self;
        options.outages.remove_partition(options.partition);
        options.in_flight.keep(calls);
        stopped.send_replace(Some(reason));
        if let Some(drain) = draining {
            // The caller may be gone.
            let _ = drain.done.send(());
        }
    }

    async fn work_until_stopped(&mut self) -> crate::error::Result<()> {
        loop {
            match self.run().await {
                LoopExit::Drained => return Ok(()),
                LoopExit::Lost(error) => {
                    let partition = self.options.partition;
                    if self.options.outages.log.record_failure(partition) {
                        tracing::error!(partition, %error, "the log could not be written; replaying it");
                    } else {
                        tracing::debug!(partition, %error, "this log could not be written either");
                    }
                    self.recover(error).await?;
                }
            }
        }
    }

    fn log_unfinished(&self, error: &Error) {
        let partition = self.options.partition;
        let (in_flight, answered) = self.calls.remaining_counts();
        tracing::error!(
            partition,
            %error,
            calls_in_flight = in_flight,
            answers_not_written = answered,
            "the engine stops; calls that are not settled in the log have an unknown outcome"
        );
    }

    async fn run(&mut self) -> LoopExit {
        let mut writing = PendingAppends::default();
        let writing_max = self.store.max_concurrent_appends().max(1);
        self.share = BatchShare::new(writing_max);
        let mut tenure = Renewal::starting(self);
        let every = self.options.lease / 3;
        let mut renew_at = Instant::now() + every;
        loop {
            self.report_limits();
            if writing.sealed.len() < writing_max {
                self.let_ready_tasks_join().await;
                self.start_batch(&mut writing);
                if self.is_drained() && writing.sealed.is_empty() {
                    return LoopExit::Drained;
                }
            }
            self.read_ahead();
            let wake_at = self.wake_at(renew_at);
            let most = self.commands_max();
            let room = self.building.has_room(most);
            let room_for_answers = self.building.has_room_for_answers(most);
            tokio::select! {
                biased;
                Some(appended) = writing.appends.next() => match appended {
                    Ok(lsn) => {
                        if let Some(sealed) = writing.sealed.pop_front() {
                            self.share.written(sealed.commands);
                            self.finish(sealed, lsn);
                        }
                    }
                    Err(error) => return self.fail(writing.sealed, error),
                },
                Some(event) = self.calls.events.recv(), if room_for_answers => {
                    self.apply_call_event(event);
                    self.gather();
                }
                command = self.commands.recv(), if room && !self.abandoned => {
                    match command {
                        Some(command) => self.apply(command),
                        // Every handle is gone: no one can drain it any more.
                        None => {
                            let (done, accepts) = (oneshot::channel().0, false);
                            (self.abandoned, self.draining) = (true, Some(Drain { done, accepts }));
                        }
                    }
                    self.gather();
                }
                () = tokio::time::sleep_until(wake_at), if writing.sealed.len() < writing_max => {
                    if Instant::now() >= renew_at {
                        renew_at = Instant::now() + every;
                        self.renew_claims();
                    }
                    self.building.commands += 1;
                }
                renewed = tenure.next() => match self.apply_renewal(renewed) {
                    Ok(()) => {
                        self.send_held_back();
                        self.deliver_held_back();
                    }
                    Err(error) => return self.fail(writing.sealed, error),
                },
            }
        }
    }

    /// Whether it is draining and nothing is in flight any more; from then on nothing is accepted.
    fn is_drained(&mut self) -> bool {
        let idle = self.calls.count() == 0 && self.handing_out == 0 && self.held_back_work.is_empty();
        match &mut self.draining {
            Some(drain) if idle => {
                drain.accepts = false;
                true
            }
            _ => false,
        }
    }

    fn wake_at(&self, renew_at: Instant) -> Instant {
        let next = self.model.next_change(self.free_slots() > 0).map(|at| self.clock.instant(at));
        let books = self.limit_reporter.as_ref().map(|books| books.next_at);
        next.into_iter().chain(books).fold(renew_at, Instant::min)
    }

    /// Seals the collected batch and starts writing it; a batch that decided nothing and drains no
    /// outbox row is answered with the one before it, or at once.
    fn start_batch(&mut self, writing: &mut PendingAppends) {
        if self.building.is_empty() {
            return;
        }
        self.take();
        let now = self.clock.now();
        if self.building.has_no_decision() {
            let facts = std::mem::take(&mut self.building.facts);
            let (_, sealed) = std::mem::take(&mut self.building).seal(self.last_sent, now);
            (self.building.can_wait, self.building.facts) = (facts.len(), facts);
            match writing.sealed.back_mut() {
                Some(before) => before.join(sealed),
                None => self.answer(sealed),
            }
            return;
        }
        let changes = self.changes();
        let next = self.building.next(self.spare.pop().unwrap_or_default());
        let (batch, mut sealed) = std::mem::replace(&mut self.building, next).seal(self.last_sent, now);
        sealed.changes = changes;
        self.last_sent = Lsn(self.last_sent.0 + 1);
        self.facts_since_snapshot += batch.facts.len() as u64;
        sealed.snapshot = self.snapshot_if_due();
        self.share.sealed(sealed.commands, sealed.commands + self.waiting());
        self.calls.track_unsent(&sealed.claims);
        let (store, ownership) = (std::sync::Arc::clone(&self.store), self.ownership());
        writing.appends.push_back(Box::pin(async move { store.append(ownership, batch).await }));
        writing.sealed.push_back(sealed);
    }

    /// Takes a snapshot if one is due. The model now equals the log including this batch.
    fn snapshot_if_due(&mut self) -> Option<Vec<bytes::Bytes>> {
        use std::sync::atomic::Ordering;
        let worth = self.options.snapshot_after_facts.max(SNAPSHOT_WORTH * self.model.snapshot_len());
        if self.facts_since_snapshot < worth || self.snapshot_under_way.load(Ordering::Acquire) {
            return None;
        }
        self.snapshot_under_way.store(true, Ordering::Release);
        self.facts_since_snapshot = 0;
        Some(codec::encode_iter(self.model.snapshot(), SNAPSHOT_PART_LEN))
    }

    /// Fails every append in flight: the log refuses whatever follows a failed append.
    fn fail(&mut self, writing: VecDeque<SealedBatch>, error: tidegate_store::Error) -> LoopExit {
        let told = match error.kind() {
            StoreErrorKind::Unsure => {
                let message = format!(
                    "it is unknown whether this was stored; repeat it with the same dedupe_key: {error}"
                );
                Error { unsure: true, ..Error::new(crate::error::ErrorKind::StoreUnavailable, message) }
            }
            _ => Error::from(tidegate_store::Error::new(error.kind(), error.to_string())),
        };
        for sealed in writing {
            if sealed.snapshot.is_some() {
                self.snapshot_under_way.store(false, std::sync::atomic::Ordering::Release);
            }
            sealed.reports.into_iter().for_each(|report| self.calls.keep_unsettled(report));
            self.calls.mark_never_sent(&sealed.claims);
            for claims in sealed.takers.iter().flat_map(|taker| &taker.claims) {
                self.calls.mark_never_sent(claims);
            }
            sealed.replies.into_iter().for_each(|reply| refuse(reply, &told));
        }
        let gathered = std::mem::take(&mut self.building);
        gathered.reports.into_iter().for_each(|report| self.calls.keep_unsettled(report));
        gathered.replies.into_iter().for_each(|reply| refuse(reply, &told));
        LoopExit::Lost(error)
    }
}

/// Releases a partition, so that the next owner need not wait for the lease to expire.
async fn release(store: &dyn Store, ownership: Ownership) {
    let error = match tokio::time::timeout(RELEASE_MAX, store.release(ownership)).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(error, "the partition could not be released");
}

/// Tells a caller that the batch failed.
pub(super) fn refuse(reply: super::Reply, error: &Error) {
    match reply {
        super::Reply::Accept(reply, answers) => {
            // The caller may be gone.
            let _ = reply.send(answers.iter().map(|_| Err(error.clone())).collect());
        }
        super::Reply::Other(answer) => answer(Err(error)),
    }
}
