//! Becoming the owner, and becoming it again after the log could not be written: replay, then settle every claim
//! that nobody carries any more as an outcome unknown. Calls that are still under way go on; their reports count.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_core::{Fault, FaultClass, Model, Verdict};
use tidegate_store::log::Lsn;
use tidegate_store::{Clock, Kind, Store};

use super::run::refuse;
use super::{Command, Owner};
use crate::error::{Code, Error, Result};

/// Between two tries to read the log again.
const PAUSE: Duration = Duration::from_millis(250);

/// What a partition's log says.
pub(crate) struct Replayed {
    pub(crate) model: Model,
    /// How long the log was.
    pub(crate) facts_read: u64,
    /// The last append.
    pub(crate) last: Lsn,
}

/// Reads a partition's log into a fresh model.
pub(crate) async fn replay(store: &Arc<dyn Store>, partition: Partition) -> tidegate_store::Result<Replayed> {
    let (mut model, mut facts_read) = (Model::new(), 0_u64);
    let mut absorb = |facts: Vec<tidegate_core::Fact>| {
        facts_read += facts.len() as u64;
        for fact in &facts {
            model.absorb(fact);
        }
    };
    let last = store.load(partition, &mut absorb).await?;
    Ok(Replayed { model, facts_read, last })
}

impl Owner {
    /// Puts the limits and the claims of a fresh model in order.
    pub(crate) fn settle_in(&mut self) {
        let now = self.clock.now();
        for (name, shape) in &self.limits {
            if let Err(refusal) = self.model.configure(now, name, *shape, &mut self.building.facts) {
                tracing::warn!(limit = %name, ?refusal, "a configured limit was not set");
            }
        }
        for (seq, fence) in self.model.claims() {
            if self.running.get(&seq).is_some_and(|running| running.fence == fence) {
                continue;
            }
            let fault = Fault::new(FaultClass::Transient, "the process stopped while it was under way");
            let body = bytes::Bytes::new();
            self.settle(crate::carry::Report {
                seq,
                fence,
                verdict: Verdict::Unknown(fault),
                hints: Vec::new(),
                body,
            });
        }
        for report in std::mem::take(&mut self.unsettled) {
            self.settle(report);
        }
        self.building.commands += 1;
    }

    /// Drops what is in memory and reads the log again, for as long as that may help; refuses commands meanwhile.
    pub(super) async fn recover(&mut self, error: tidegate_store::Error) -> Result<()> {
        let mut last = error;
        loop {
            if matches!(last.kind(), Kind::Fenced | Kind::Unreadable) {
                return Err(last.into());
            }
            let told = Error::new(Code::StoreUnavailable, format!("the store cannot be written now: {last}"));
            self.refuse_commands(&told).await?;
            if let Err(error) = self.store.health().await {
                if error.kind() == Kind::Unsure {
                    return Err(error.into());
                }
                last = error;
                continue;
            }
            match replay(&self.store, self.ownership.partition).await {
                Ok(Replayed { model, facts_read, last }) => {
                    (self.model, self.last_sent) = (model, last);
                    self.facts_since_snapshot = facts_read;
                    self.settle_in();
                    self.wake_waiters();
                    tracing::info!("the log is writable again");
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
    }

    /// Answers commands with the reason for a moment; keeps reports.
    async fn refuse_commands(&mut self, told: &Error) -> Result<()> {
        let until = tokio::time::Instant::now() + PAUSE;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                Some(report) = self.reports.recv() => self.unsettled.push(report),
                command = self.commands.recv() => match command {
                    Some(Command::Accept(prepared, reply)) => {
                        let answers = prepared.iter().map(|_| Err(told.clone())).collect();
                        refuse(super::Reply::Accept(reply, answers), told);
                    }
                    Some(Command::Settle(report)) => self.unsettled.push(report),
                    Some(Command::Look(look)) => look(self)(Ok(())),
                    // Dropping it tells whoever asked.
                    Some(Command::Ask(_)) => {}
                    Some(Command::Drain(done)) => self.draining = Some(done),
                    None => return Err(told.clone()),
                },
            }
            if self.draining.is_some() {
                return Err(told.clone());
            }
        }
    }

    /// What ended while memory was made anew is not waited for any longer.
    fn wake_waiters(&mut self) {
        let model = &self.model;
        self.waiters.retain(|seq, _| model.active(*seq).is_some());
    }
}
