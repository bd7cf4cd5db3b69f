//! Becomes the owner, and becomes it again after the log could not be written: replays the log,
//! then settles every claim that no one executes any more as an unknown outcome. Calls still in
//! flight continue, and their reports count.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_core::model::{ClaimedCall, TakeoverOutcome};
use tidegate_core::{Fence, Model, Seq, Time};
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::{Clock, Store, StoreErrorKind};
use tokio::time::Instant;

use super::run::refuse;
use super::{Command, Owner, ReadAhead};
use crate::calls::CallEvent;
use crate::carry::Report;
use crate::engine::Executors;
use crate::error::{Error, ErrorKind, Result};
use crate::journey::Journeys;
use crate::options::Options;

/// The pause between two attempts to replay the log.
const PAUSE: Duration = Duration::from_millis(250);
/// How long the claims of remote workers hold at least when a new owner takes over: a worker that
/// could not reach an owner meanwhile extends them in that time.
const REMOTE_GRACE: Duration = Duration::from_secs(5);
/// How long a job is awaited at least when a new owner takes over, so that it can be polled once:
/// it may have ended while there was no owner.
const LAST_POLL_WAIT: Duration = Duration::from_secs(30);

/// The replayed state of a partition.
pub(crate) struct ReplayedPartition {
    pub(crate) model: Model,
    /// The length of the log, in facts.
    pub(crate) facts_read: u64,
    /// The last append.
    pub(crate) last: Lsn,
}

/// Replays a partition's log into a fresh model, which leaves these kinds to remote workers, and
/// lets operations without an executor wait.
pub(crate) async fn replay(
    store: &Arc<dyn Store>,
    partition: Partition,
    executors: &Executors,
    remote_kinds: &[Arc<str>],
) -> tidegate_store::Result<ReplayedPartition> {
    let model = Model::with_remote_kinds(remote_kinds.iter().cloned());
    let mut model = model.with_known_kinds(executors.keys().cloned());
    let mut facts_read = 0_u64;
    let mut absorb = |facts: Vec<tidegate_core::Fact>| {
        facts_read += facts.len() as u64;
        for fact in &facts {
            model.absorb(fact);
        }
    };
    let last = store.load(partition, &mut absorb).await?;
    Ok(ReplayedPartition { model, facts_read, last })
}

/// Becomes the owner again, in a new epoch: an earlier append that is still in flight can no longer
/// succeed.
async fn reacquire_partition(store: Arc<dyn Store>, options: Options) -> tidegate_store::Result<Ownership> {
    store.acquire_partition(options.partition, &options.node, options.partition_lease).await
}

impl Owner {
    /// Reconciles the limits and the claims of a fresh model.
    pub(crate) fn restore_state(&mut self) {
        let now = self.clock.now();
        for (name, shape) in &self.limits {
            if let Err(refusal) = self.model.configure(now, name, *shape, &mut self.building.facts) {
                tracing::warn!(limit = %name, ?refusal, "a configured limit was not set");
            }
        }
        self.model.retain_configured(now, &self.limits, &mut self.building.facts);
        // First the claims whose outcome is known: no one executes them any more, and they are not
        // unknown.
        let unsettled = self.calls.take_unsettled();
        // The log may not say that a call was sent. Mark all of them first, because settling moves
        // the clock.
        for report in &unsettled {
            if let Some(sent_at) = report.sent_at {
                self.model.mark_sent(sent_at, report.seq, report.fence, &mut self.building.facts);
            }
        }
        for report in unsettled {
            self.settle(report);
        }
        for (seq, fence) in self.model.claims() {
            self.restore_claim(seq, fence, now);
        }
        self.model.await_again(now, now.after(LAST_POLL_WAIT), &mut self.building.facts);
        self.calls.forget_never_sent();
        self.building.commands += 1;
    }

    /// Reconciles a claim in the log with what this process knows about its call.
    fn restore_claim(&mut self, seq: Seq, fence: Fence, now: Time) {
        let Some(status) = self.model.claim_status(seq, fence) else { return };
        // On a shared store the claimant may be alive and its call in flight.
        let default_call = match status.is_remote {
            true => ClaimedCall::RemoteWorker,
            false if self.store.is_shared() => ClaimedCall::Elsewhere,
            false => ClaimedCall::Orphaned,
        };
        let call = self.calls.claimed_call(seq, fence, status.accepted_at).unwrap_or(default_call);
        let lease = if status.is_remote { REMOTE_GRACE } else { self.options.lease };
        let until = now.after(lease);
        match self.model.take_over(now, (seq, fence), call, until, &mut self.building.facts) {
            Some(TakeoverOutcome::Kept { cancel_requested: true }) => self.calls.stop(seq, fence),
            Some(TakeoverOutcome::Settle(verdict)) => {
                self.settle(Report::without_call(seq, fence, verdict).into());
            }
            Some(TakeoverOutcome::Kept { cancel_requested: false }) | None => {}
        }
    }

    /// Drops the state in memory and replays the log, for as long as that may help; refuses
    /// commands meanwhile.
    pub(super) async fn recover(&mut self, error: tidegate_store::Error) -> Result<()> {
        let mut last = error;
        loop {
            if matches!(
                last.kind(),
                StoreErrorKind::Fenced | StoreErrorKind::Held | StoreErrorKind::Unreadable
            ) {
                return Err(last.into());
            }
            let refusal =
                Error::new(ErrorKind::StoreUnavailable, format!("the store cannot be written now: {last}"));
            self.refuse_commands(&refusal, tokio::time::sleep(PAUSE)).await?;
            let store = Arc::clone(&self.store);
            if let Err(error) = self.refuse_commands(&refusal, async move { store.health().await }).await? {
                if error.kind() == StoreErrorKind::Unsure {
                    return Err(error.into());
                }
                last = error;
                continue;
            }
            let asked = Instant::now();
            let again = reacquire_partition(Arc::clone(&self.store), self.options.clone());
            let owned = match self.refuse_commands(&refusal, again).await? {
                Ok(owned) => owned,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            self.calls.begin_epoch(owned.epoch);
            let (store, partition) = (Arc::clone(&self.store), self.options.partition);
            let (executors, kinds) = (Arc::clone(&self.carrier.executors), Arc::clone(&self.remote_kinds));
            let replayed = async move { replay(&store, partition, &executors, &kinds).await };
            match self.refuse_commands(&refusal, replayed).await? {
                Ok(ReplayedPartition { model, facts_read, last }) => {
                    self.ownership.send_replace(owned);
                    self.owned_until = asked + self.options.partition_lease;
                    self.payloads.clear();
                    self.journeys = Journeys::new(self.clock.now());
                    self.ahead = ReadAhead::for_model(&model);
                    (self.model, self.last_sent) = (model, last);
                    self.facts_since_snapshot = facts_read;
                    self.wake_waiters();
                    self.restore_state();
                    self.send_held_back();
                    self.deliver_held_back();
                    if self.options.outages.log.record_success(partition) {
                        tracing::info!("the log is writable again");
                    }
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
    }

    /// Refuses commands with the reason until `until` resolves; keeps reports.
    async fn refuse_commands<T>(&mut self, refusal: &Error, until: impl Future<Output = T>) -> Result<T> {
        let mut until = std::pin::pin!(until);
        let give_up = self.calls.give_up.clone();
        loop {
            tokio::select! {
                happened = &mut until => return Ok(happened),
                () = give_up.cancelled() => return Err(refusal.clone()),
                Some(event) = self.calls.events.recv() => self.note_unsettled(event),
                command = self.commands.recv() => match command {
                    Some(Command::Accept(prepared, reply)) => {
                        let answers = prepared.iter().map(|_| Err(refusal.clone())).collect();
                        refuse(super::Reply::Accept(reply, answers), refusal);
                    }
                    Some(Command::Query(look)) => look(self)(Ok(())),
                    // Dropping it notifies the caller.
                    Some(Command::Update(_)) => {}
                    Some(Command::Drain(drain)) => self.draining = Some(drain),
                    // Every handle is gone: no one can wait for more.
                    None => return Err(refusal.clone()),
                },
            }
        }
    }

    /// Keeps an event of a call until the log can be written.
    fn note_unsettled(&mut self, event: CallEvent) {
        match event {
            CallEvent::Reported(report) => {
                let report = self.calls.finish_call(report);
                self.calls.keep_unsettled(report);
            }
            CallEvent::Fetched(fetched) => {
                for (claim, ready) in fetched {
                    match ready {
                        Ok(ready) => self.held_back.push(ready),
                        Err(_) => self.calls.mark_never_sent(&[claim]),
                    }
                }
            }
            CallEvent::WorkFetched(out, fetched) => self.keep_unread(&out, &fetched),
            // The log is replayed: it may not contain them.
            CallEvent::ReadAhead(..) => {}
        }
    }

    /// Wakes the waiters of operations that have ended in the log. Operations that recovery itself
    /// settles are not in the log yet, so their waiters keep waiting.
    fn wake_waiters(&mut self) {
        let model = &self.model;
        self.waiters.retain(|seq, _| model.active(*seq).is_some());
    }
}
