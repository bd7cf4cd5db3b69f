//! Operator commands about one operation: cancel, rerun, resolve.

use bytes::Bytes;
use tidegate_core::model::{CancelOutcome, RerunRefusal, Resolution};
use tidegate_core::{Draft, OperationId, Seq, Time};
use tidegate_store::Clock;

use super::Engine;
use super::effect::Effect;
use crate::envelope::Envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::owner::{Owner, refusal_error};
use crate::prepare;
use crate::view::OperationView;

impl Engine {
    /// Cancels an operation; a running one is asked to stop and ends soon after.
    ///
    /// # Errors
    /// When there is no operation with that id, or it has ended.
    pub async fn cancel(&self, id: OperationId) -> Result<OperationView> {
        let view = self.get(id).await?;
        if !view.state.can_cancel() {
            return Err(invalid_state_error(&view, "cancel"));
        }
        let seq = id.seq();
        let effect = self
            .update_owner(move |owner| {
                let now = owner.clock.now();
                match owner.model.cancel(now, seq, &mut owner.building.facts) {
                    CancelOutcome::Ended(ended) => Some(owner.end_by_command(ended, Bytes::new())),
                    CancelOutcome::Requested(fence) => {
                        owner.calls.stop(seq, fence);
                        Some(Effect::active(owner, seq))
                    }
                    // It ended in the meantime.
                    CancelOutcome::NotActive => None,
                }
            })
            .await?;
        match effect {
            Some(effect) => Ok(self.view_after(view, effect).await),
            None => Err(invalid_state_error(&self.get(id).await?, "cancel")),
        }
    }

    /// Reruns an operation that failed or was canceled, at the end of its group, or as the first of
    /// a group that is held for it.
    ///
    /// # Errors
    /// When there is no operation with that id, or it has not failed.
    pub async fn rerun(&self, id: OperationId) -> Result<OperationView> {
        self.rerun_as_seen(id, None).await
    }

    /// Reruns an operation as [`rerun`](Self::rerun) does, if it ended before a time: the end that
    /// the operator has seen, and not one after a rerun by someone else.
    ///
    /// # Errors
    /// When there is no operation with that id, it has not failed, or it ended later.
    pub async fn rerun_as_seen(&self, id: OperationId, ended_before: Option<Time>) -> Result<OperationView> {
        // What the store says of it must hold until it is accepted again: another caller may rerun
        // it, and it may succeed.
        let lock = id.seq().0 as usize % self.rerun_locks.len();
        let _rerunning = self.rerun_locks[lock].lock().await;
        let view = self.get(id).await?;
        let stored = self.stored(id.seq()).await.map_err(|error| match error.kind {
            ErrorKind::NoOperation => only_archived_error(id),
            _ => error,
        })?;
        if OperationId::new(stored.operation.at, id.partition(), id.seq()) != id {
            return Err(only_archived_error(id));
        }
        let Some(result) = stored.result.as_ref().filter(|_| view.state.can_rerun()) else {
            return Err(invalid_state_error(&view, "rerun"));
        };
        if ended_before.is_some_and(|before| view.finished_at.is_some_and(|at| at >= before)) {
            let message = format!("{id} has run again since then, and ended later");
            return Err(Error::new(ErrorKind::NotNow, message));
        }
        let (ended, doubt) = (result.state, result.fault.clone());
        let draft = Draft { doubt, ..self.draft_for_rerun(&stored.operation)? };
        let (seq, at) = (id.seq(), stored.operation.at);
        let accepted = self
            .update_owner(move |owner| {
                let now = owner.clock.now();
                owner
                    .model
                    .reopen(now, (seq, at), ended, draft, &mut owner.building.facts)
                    .map(|()| {
                        owner.building.reopen(seq);
                        Effect::active(owner, seq)
                    })
                    .map_err(|refusal| (refusal, now))
            })
            .await?;
        match accepted {
            Ok(effect) => Ok(self.view_after(view, effect).await),
            Err((RerunRefusal::Draft(refusal), now)) => Err(refusal_error(refusal, now)),
            Err((RerunRefusal::NotEnded | RerunRefusal::Succeeded, _)) => {
                Err(invalid_state_error(&self.get(id).await?, "rerun"))
            }
        }
    }

    fn draft_for_rerun(&self, operation: &tidegate_store::log::StoredOperation) -> Result<Draft> {
        let executor = self.executors.get(&operation.kind);
        if let Some(reason) = executor.and_then(|executor| executor.rerun_refusal(&operation.payload)) {
            return Err(Error::new(ErrorKind::NotNow, reason));
        }
        let envelope = Envelope::decode(&operation.envelope);
        let required =
            prepare::requirements(&self.executors, &operation.kind, &operation.payload, &envelope.cost)?;
        Ok(prepare::draft(&operation.group, &operation.kind, required, &envelope, &self.options))
    }

    /// Resolves an operation whose outcome is unknown.
    ///
    /// # Errors
    /// When its outcome is not unknown.
    pub async fn resolve(&self, id: OperationId, resolution: Resolution) -> Result<OperationView> {
        self.resolve_as_seen(id, resolution, SeenOutcome::default(), Bytes::new()).await
    }

    /// Resolves an operation whose outcome is unknown, if it still is the one that the operator has
    /// seen. `result` is what it is said to have returned.
    ///
    /// # Errors
    /// When its outcome is not unknown, or is another one than was seen.
    pub async fn resolve_as_seen(
        &self,
        id: OperationId,
        resolution: Resolution,
        seen: SeenOutcome,
        result: Bytes,
    ) -> Result<OperationView> {
        let view = self.get(id).await?;
        if view.state.is_ended() {
            return Err(invalid_state_error(&view, "resolve"));
        }
        let seq = id.seq();
        let resolved = self
            .update_owner(move |owner| {
                let now = owner.clock.now();
                if let Some(problem) = owner.changed_since(seq, seen) {
                    return Err(Some(problem));
                }
                let ended = owner.model.resolve(now, seq, resolution, &mut owner.building.facts);
                Ok(match ended.map_err(|_| None)? {
                    Some(ended) => owner.end_by_command(ended, result),
                    None => Effect::active(owner, seq),
                })
            })
            .await?;
        match resolved {
            Ok(effect) => Ok(self.view_after(view, effect).await),
            Err(None) => Err(invalid_state_error(&view, "resolve")),
            Err(Some(problem)) => {
                Err(Error::new(ErrorKind::NotNow, format!("{id} has changed: {problem}")).operation(id))
            }
        }
    }
}

/// Which unknown outcome an operator has seen and decides about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenOutcome {
    /// That of this attempt.
    pub attempt: Option<u16>,
    /// One that was unknown before this time.
    pub before: Option<Time>,
}

impl SeenOutcome {
    /// The outcome of this attempt, if given.
    #[must_use]
    pub const fn with_attempt(mut self, attempt: Option<u16>) -> Self {
        self.attempt = attempt;
        self
    }

    /// An outcome that was unknown before this time, if given.
    #[must_use]
    pub const fn with_before(mut self, before: Option<Time>) -> Self {
        self.before = before;
        self
    }
}

impl Owner {
    /// In what an unknown outcome differs from the one that was seen; `None` when it is the same.
    fn changed_since(&self, seq: Seq, seen: SeenOutcome) -> Option<String> {
        let active = self.model.active(seq)?;
        if seen.attempt.is_some_and(|attempt| attempt != active.attempt) {
            return Some(format!("it is at attempt {} now", active.attempt));
        }
        let since = self.model.group(&active.group)?.held?.since;
        let is_later = seen.before.is_some_and(|before| since >= before);
        is_later.then(|| format!("its outcome is unknown only since {since}"))
    }
}

fn invalid_state_error(view: &OperationView, verb: &str) -> Error {
    let hint = match verb {
        "cancel" => "only an operation that has not ended can be canceled",
        "rerun" => "only a failed or canceled operation can be rerun",
        _ => "only an unknown outcome can be resolved",
    };
    Error::new(ErrorKind::NotNow, format!("{} is {}: {hint}", view.id, view.state)).operation(view.id)
}

/// The error for an operation that only the archive has: its sequence number may belong to another
/// operation by now.
fn only_archived_error(id: OperationId) -> Error {
    let message = format!("{id} is only in the archive: it can be read but not rerun");
    Error::new(ErrorKind::NotNow, message).operation(id)
}
