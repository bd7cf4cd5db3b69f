//! The loop. Batches are sent when nothing is being written and collected while something is; never by a timer.

use std::future::Future;
use std::pin::Pin;

use tidegate_store::log::Lsn;
use tidegate_store::{Kind, codec};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Owner;
use super::batch::Sealed;
use crate::error::Error;

/// An append under way.
type Appending = Pin<Box<dyn Future<Output = tidegate_store::Result<Lsn>> + Send>>;

/// Bytes of one part of a snapshot.
const SNAPSHOT_PART_LEN: usize = 1024 * 1024;
/// A snapshot is worth it when the log is this many times longer than what it would say.
const SNAPSHOT_WORTH: u64 = 2;

/// Why the loop ended.
pub(super) enum Ending {
    /// Everything was drained.
    Drained,
    /// The log could not be written: memory must be made anew.
    Lost(tidegate_store::Error),
}

impl Owner {
    /// Works until it is drained or the log fails for good.
    pub(crate) async fn work(mut self) {
        loop {
            match self.run().await {
                Ending::Drained => break,
                Ending::Lost(error) => {
                    tracing::error!(%error, "the log could not be written; reading it again");
                    if let Err(error) = self.recover(error).await {
                        tracing::error!(%error, "the engine stops");
                        self.stopped.send_replace(Some(error));
                        return;
                    }
                }
            }
        }
        if let Err(error) = self.store.release(self.ownership).await {
            tracing::warn!(%error, "the partition could not be given up");
        }
        let ended = Error::new(crate::error::Code::Stopping, "the engine has stopped");
        self.stopped.send_replace(Some(ended));
        if let Some(done) = self.draining.take() {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
    }

    async fn run(&mut self) -> Ending {
        let mut writing: Option<(Appending, Sealed)> = None;
        let every = self.options.lease / 3;
        let mut renew_at = Instant::now() + every;
        loop {
            if writing.is_none() {
                writing = self.start_batch();
                if writing.is_none() && self.draining.is_some() && self.running.is_empty() {
                    return Ending::Drained;
                }
            }
            let wake_at = self.wake_at(renew_at);
            let room = self.building.commands < self.options.batch_max;
            tokio::select! {
                biased;
                appended = wait_for(&mut writing) => {
                    let Some((_, sealed)) = writing.take() else { continue };
                    match appended {
                        Ok(lsn) => self.finish(sealed, lsn),
                        Err(error) => return self.fail(sealed, error),
                    }
                }
                Some(report) = self.reports.recv(), if room => {
                    self.apply(super::Command::Settle(report));
                    self.gather();
                }
                command = self.commands.recv(), if room && !self.abandoned => {
                    match command {
                        Some(command) => self.apply(command),
                        // Every handle is gone: nobody can drain it any more.
                        None => (self.abandoned, self.draining) = (true, Some(oneshot::channel().0)),
                    }
                    self.gather();
                }
                () = tokio::time::sleep_until(wake_at), if writing.is_none() => {
                    if Instant::now() >= renew_at {
                        renew_at = Instant::now() + every;
                        self.renew_claims();
                        self.renew_ownership().await;
                    }
                    self.building.commands += 1;
                }
            }
        }
    }

    /// Takes along what is waiting already.
    fn gather(&mut self) {
        while self.building.commands < self.options.batch_max {
            if let Ok(report) = self.reports.try_recv() {
                self.apply(super::Command::Settle(report));
            } else if let Ok(command) = self.commands.try_recv() {
                self.apply(command);
            } else {
                break;
            }
        }
    }

    fn wake_at(&self, renew_at: Instant) -> Instant {
        let next = self.model.next_change(self.free_slots() > 0).map(|at| self.clock.instant(at));
        next.map_or(renew_at, |next| next.min(renew_at))
    }

    /// Closes the batch that has gathered and starts writing it; one that decided nothing is answered at once.
    fn start_batch(&mut self) -> Option<(Appending, Sealed)> {
        if self.building.is_empty() {
            return None;
        }
        self.take();
        let changes = self.changes();
        let (batch, mut sealed) = std::mem::take(&mut self.building).seal();
        sealed.changes = changes;
        if batch.facts.is_empty() {
            self.answer(sealed);
            return None;
        }
        self.facts_since_snapshot += batch.facts.len() as u64;
        sealed.snapshot = self.snapshot_if_due();
        self.leaving = sealed.claims.len();
        let (store, ownership) = (std::sync::Arc::clone(&self.store), self.ownership);
        let appending: Appending = Box::pin(async move { store.append(ownership, batch).await });
        Some((appending, sealed))
    }

    /// The model says now exactly what the log will say once this batch is in it.
    fn snapshot_if_due(&mut self) -> Option<Vec<bytes::Bytes>> {
        use std::sync::atomic::Ordering;
        let worth = self.options.snapshot_after_facts.max(SNAPSHOT_WORTH * self.model.size());
        if self.facts_since_snapshot < worth || self.snapshot_under_way.load(Ordering::Acquire) {
            return None;
        }
        self.snapshot_under_way.store(true, Ordering::Release);
        self.facts_since_snapshot = 0;
        Some(codec::encode_iter(self.model.snapshot(), SNAPSHOT_PART_LEN))
    }

    async fn renew_ownership(&mut self) {
        match self.store.renew(self.ownership, self.options.lease).await {
            Ok(ownership) => self.ownership = ownership,
            // The next append says the same, and stops everything.
            Err(error) => tracing::warn!(%error, "the partition's lease was not renewed"),
        }
    }

    fn fail(&mut self, sealed: Sealed, error: tidegate_store::Error) -> Ending {
        let told = match error.kind() {
            Kind::Unsure => Error::new(
                crate::error::Code::StoreUnavailable,
                format!(
                    "it is not known whether this was stored; repeat it with the same dedupe_key: {error}"
                ),
            ),
            _ => Error::from(tidegate_store::Error::new(error.kind(), error.to_string())),
        };
        if sealed.snapshot.is_some() {
            self.snapshot_under_way.store(false, std::sync::atomic::Ordering::Release);
        }
        self.leaving = 0;
        self.unsettled.extend(sealed.reports);
        self.unsettled.append(&mut self.building.reports);
        for reply in sealed.replies.into_iter().chain(std::mem::take(&mut self.building).replies) {
            refuse(reply, &told);
        }
        Ending::Lost(error)
    }
}

/// Tells a caller that the batch does not stand.
pub(super) fn refuse(reply: super::Reply, error: &Error) {
    match reply {
        super::Reply::Accept(reply, answers) => {
            // The caller may be gone.
            let _ = reply.send(answers.iter().map(|_| Err(error.clone())).collect());
        }
        super::Reply::Other(answer) => answer(Err(error)),
    }
}

async fn wait_for(writing: &mut Option<(Appending, Sealed)>) -> tidegate_store::Result<Lsn> {
    match writing {
        Some((appending, _)) => appending.await,
        None => std::future::pending().await,
    }
}
