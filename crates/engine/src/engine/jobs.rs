//! What a capability that submits jobs through alternatives asks of the engine: which alternative
//! an operation uses or waits for, its attempts, and a poll as soon as its provider reports
//! something.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::model::AlternativeStatus;
use tidegate_core::{Alternatives, Fault, Fence, OperationId, Time, Verdict};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::StoredOperation;
use tidegate_store::{Clock, SharedState};
use tidegate_upstream::JobNote;

use super::Engine;
use crate::carry::Report;
use crate::error::{ErrorKind, Result};
use crate::owner::refusal_error;

/// The attempt that an operation is at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CurrentAttempt {
    /// The fence of its claim.
    pub fence: Fence,
    /// The alternative that it uses, if the operation has some.
    pub alternative: Option<Arc<str>>,
    /// When its job was accepted; `None` while it is being submitted.
    pub awaiting_since: Option<Time>,
}

impl Engine {
    /// The current time, by the clock that the queue goes by.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The shared buckets and leases of its store.
    #[must_use]
    pub fn shared_state(&self) -> Arc<dyn SharedState> {
        Arc::clone(&self.store) as _
    }

    /// The attempts of an operation whose job ends elsewhere, or that used an alternative, in their
    /// order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn attempts(&self, id: OperationId) -> Result<Vec<StoredAttempt>> {
        let mut found = self.attempts_of_each(&[id]).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// The [attempts](Self::attempts) of several operations, in the order of `ids`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn attempts_of_each(&self, ids: &[OperationId]) -> Result<Vec<Vec<StoredAttempt>>> {
        let seqs = ids.iter().map(|id| id.seq()).collect();
        Ok(self.store.read_attempts(self.options.partition, seqs).await?)
    }

    /// The payload of an operation; `None` when only the archive has it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn payload(&self, id: OperationId) -> Result<Option<Bytes>> {
        match self.stored(id.seq()).await {
            Ok(stored) => {
                let StoredOperation { at, seq, payload, .. } = stored.operation;
                let is_same = OperationId::new(at, self.options.partition, seq) == id;
                Ok(Some(payload).filter(|_| is_same))
            }
            Err(error) if error.kind == ErrorKind::NoOperation => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The attempt that an operation is at; `None` when it waits or has ended.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn current_attempt(&self, id: OperationId) -> Result<Option<CurrentAttempt>> {
        let seq = id.seq();
        self.query_owner(move |owner| {
            let fence = owner.model.current_fence(seq)?;
            let status = owner.model.claim_status(seq, fence)?;
            let alternative = owner.model.picked_alternative(seq).cloned();
            let current = CurrentAttempt { fence, alternative, awaiting_since: status.awaiting_since };
            (owner.id_of(seq, status.accepted_at) == id).then_some(current)
        })
        .await
    }

    /// The attempts through alternatives that these operations are at, in the order of `ids`: each
    /// as its durable claim has it, before anything else is known of it. `None` for an operation
    /// that waits or has ended.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn claimed_attempts(&self, ids: &[OperationId]) -> Result<Vec<Option<StoredAttempt>>> {
        let ids = ids.to_vec();
        self.query_owner(move |owner| ids.iter().map(|id| owner.claimed_attempt(*id)).collect()).await
    }

    /// Every alternative of an operation that has not ended, each with what keeps it from being
    /// used.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn alternatives(&self, id: OperationId) -> Result<Vec<AlternativeStatus>> {
        let seq = id.seq();
        self.query_owner(move |owner| owner.model.alternatives(seq, owner.clock.now())).await
    }

    /// Replaces the alternatives of operations that have not ended, each with all that it charges;
    /// returns how many changed. Those keep their turns, a claim keeps the alternative that it
    /// uses, and what failed is not tried again while another one is left.
    ///
    /// # Errors
    /// When alternatives are out of bounds or charge an unknown limit: those before have changed
    /// then. Or when the store cannot be written.
    pub async fn replace_alternatives(&self, each: Vec<(OperationId, Arc<Alternatives>)>) -> Result<usize> {
        self.update_owner(move |owner| {
            let now = owner.clock.now();
            let mut changed = 0;
            for (id, alternatives) in each {
                let seq = id.seq();
                if owner.model.active(seq).is_none_or(|active| owner.id_of(seq, active.at) != id) {
                    continue;
                }
                let (new, facts) = (Alternatives::clone(&alternatives), &mut owner.building.facts);
                match owner.model.replace_alternatives(now, seq, new, facts) {
                    Ok(is_changed) => changed += usize::from(is_changed),
                    Err(refusal) => return Err(refusal_error(refusal, now)),
                }
            }
            Ok(changed)
        })
        .await?
    }

    /// Ends operations as failed that no worker has and whose jobs no one awaits; returns how many.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn fail_waiting(&self, each: Vec<(OperationId, Fault)>) -> Result<usize> {
        self.update_owner(move |owner| {
            let (now, mut count) = (owner.clock.now(), 0);
            for (id, fault) in each {
                let seq = id.seq();
                if owner.model.active(seq).is_none_or(|active| owner.id_of(seq, active.at) != id) {
                    continue;
                }
                if let Some(ended) = owner.model.fail_waiting(now, seq, fault, &mut owner.building.facts) {
                    owner.building.end(ended, Bytes::new());
                    count += 1;
                }
            }
            count
        })
        .await
    }

    /// The position of an operation with alternatives among those that wait: 1 is next. `None`
    /// when it does not wait.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn queue_position(&self, id: OperationId) -> Result<Option<usize>> {
        let seq = id.seq();
        self.query_owner(move |owner| owner.model.waiting_ahead(seq).map(|ahead| ahead + 1)).await
    }

    /// The attempt that a completion token names, whether or not it is still current.
    ///
    /// # Errors
    /// When the token is not valid.
    pub fn attempt_of_token(&self, id: OperationId, token: &str) -> Result<Fence> {
        self.verify_token(id, token)
    }

    /// Has the job of an attempt polled at once, because its provider reported something; `note`
    /// replaces what is kept of the job. When the response to the submit has not come yet, the job
    /// is awaited from now on, for `timeout`. Returns `false` when the attempt is not current any
    /// more; then nothing changes.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn poll_attempt(
        &self,
        id: OperationId,
        fence: Fence,
        note: Option<JobNote>,
        timeout: Duration,
    ) -> Result<bool> {
        let seq = id.seq();
        self.update_owner(move |owner| {
            let status = owner.model.claim_status(seq, fence);
            let is_same = |at: Time| owner.id_of(seq, at) == id;
            let Some(status) = status.filter(|status| status.fence == fence && is_same(status.accepted_at))
            else {
                return false;
            };
            let now = owner.clock.now();
            if status.awaiting_since.is_some() && note.is_none() {
                // A poll in progress sees it, or the next one does.
                owner.model.poll_now(now, seq, fence, &mut owner.building.facts);
                return true;
            }
            let verdict = Verdict::Accepted { poll_after: Some(Duration::ZERO), timeout };
            let accepted_at = Some(status.accepted_at);
            let report = Report { accepted_at, job: note, ..Report::without_call(seq, fence, verdict) };
            owner.settle(report.into())
        })
        .await
    }
}
