//! The outbox drainer of a partition. It accepts the rows that applications submitted inside their
//! own transactions, in the order of their numbers, by the same rules as `POST /v1/operations`. A
//! row that cannot be accepted is moved aside, so that the rest continues. It keeps nothing in
//! memory: what it did not finish is still in the outbox at its next poll.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, ErrorKind, Submission};
use tidegate_store::outbox::{OutboxId, OutboxRow, TOPIC};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::LocalPartitions;
use crate::error::{Error, ErrorCode, Result};
use crate::telemetry;
use crate::wire::{request, submission};
use crate::work::RemoteKinds;

/// How many rows are accepted in one step.
const PAGE: usize = 200;
/// The poll interval when nothing wakes it.
const EVERY: Duration = Duration::from_secs(1);
/// The first and the longest pause after a failure.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long an operation for an upstream unknown to this node may wait for a node that knows it.
const NEWS: Duration = Duration::from_secs(300);

pub(super) struct Drainer {
    pub engine: Engine,
    /// Notified when a row was submitted.
    pub wake: Arc<Notify>,
    /// The kinds that are left to remote workers.
    pub kinds: RemoteKinds,
}

impl Drainer {
    /// Runs until the engine has stopped.
    pub(super) async fn run(self) {
        tokio::select! {
            _ = self.engine.stopped() => {}
            () = self.drain() => {}
        }
    }

    async fn drain(&self) {
        let mut pause = PAUSE;
        loop {
            match self.drain_page().await {
                Ok(0) => {
                    pause = PAUSE;
                    // Woken or timed out: it polls in both cases.
                    let _ = timeout(EVERY, self.wake.notified()).await;
                }
                Ok(_) => pause = PAUSE,
                Err(error) => {
                    if pause == PAUSE && error.code != ErrorCode::Stopping {
                        let partition = self.engine.partition();
                        tracing::warn!(partition, %error, "cannot drain the outbox; retrying");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Accepts or moves aside the first waiting rows; returns how many it handled.
    pub(super) async fn drain_page(&self) -> Result<usize> {
        let rows = self.engine.outbox_rows(PAGE).await?;
        let (mut good, mut handed_in, mut bad) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match parse_row(&row, &self.kinds) {
                Ok(submission) => {
                    handed_in.push((row.id, row.waited, submission.payload.clone()));
                    good.push((row.id, submission));
                }
                Err(error) => bad.push((row.id, error)),
            }
        }
        let (mut accepted, mut later) = (0, None);
        let answers = self.engine.submit_outbox_rows(good).await;
        for ((id, waited, payload), answer) in handed_in.into_iter().zip(answers) {
            match answer {
                Ok(()) => accepted += 1,
                Err(error) if error.kind.is_transient() => later = Some(error),
                // In a rolling deployment, nodes get a new configuration one after the other.
                Err(error) if error.kind == ErrorKind::UnknownUpstream && waited < NEWS => {}
                Err(error) => bad.push((id, request::explain(error.into(), &payload))),
            }
        }
        telemetry::record_drained(accepted);
        let aside = bad.len();
        for (id, why) in bad {
            self.move_aside(id, &why).await?;
        }
        later.map_or_else(|| Ok(aside + accepted), |error| Err(error.into()))
    }

    async fn move_aside(&self, id: OutboxId, why: &Error) -> Result<()> {
        self.engine.refuse_outbox_row(id, why.code, &why.message).await?;
        let (partition, code) = (self.engine.partition(), why.code.to_string());
        let field = why.field.as_deref().unwrap_or_default();
        tracing::warn!(partition, row = id.0, %code, field, "an outbox row was refused and moved aside");
        telemetry::record_outbox_refused(why);
        Ok(())
    }
}

/// Parses a row as a submission. Its times count from the moment it was submitted, and it always
/// has a dedupe key.
fn parse_row(row: &OutboxRow, kinds: &RemoteKinds) -> Result<Submission> {
    let name: Arc<str> = format!("outbox-{}", row.id.0).into();
    let mut submission = submission::parse_one(&row.operation, &name)?;
    kinds.check_shape(&submission)?;
    submission.dedupe_key.get_or_insert(name);
    submission.delay = submission.delay.map(|delay| delay.saturating_sub(row.waited));
    if let Some(deadline) = &mut submission.deadline {
        *deadline = deadline.saturating_sub(row.waited);
        if deadline.is_zero() {
            let message = "Its deadline was over before it could be accepted.";
            return Err(Error::new(ErrorCode::TooLate, message).field("deadline_ms"));
        }
    }
    Ok(submission)
}

/// Wakes the drainers of this node when rows were submitted for them. Notifications may be lost:
/// the drainers poll as well.
pub(crate) async fn wake_drainers(partitions: Arc<LocalPartitions>) {
    let server = Arc::clone(partitions.server());
    let hearing = async {
        loop {
            if let Ok(mut hints) = server.store.listen(TOPIC).await {
                while let Some(hint) = hints.recv().await {
                    if let Ok(partition) = hint.parse() {
                        partitions.wake(partition);
                    }
                }
            }
            sleep(EVERY).await;
        }
    };
    tokio::select! {
        () = server.stopping.cancelled() => {}
        () = hearing => {}
    }
}

#[cfg(test)]
mod tests;
