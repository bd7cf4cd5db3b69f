//! Operator commands: cancel, rerun, resolve, pause, resume, set limits.

use std::sync::Arc;

use tidegate_core::fact::LimitShape;
use tidegate_core::model::{
    CancelOutcome, ControlRefusal, GroupView, LimitRefusal, LimitView, RerunRefusal, Resolution,
};
use tidegate_core::text::is_plain_text;
use tidegate_core::{Draft, OperationId, Seq, Time, bounds};
use tidegate_store::Clock;

use super::Engine;
use crate::envelope::Envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::journey::ReleasedHead;
use crate::owner::{Owner, refusal_error};
use crate::prepare;
use crate::query::no_group_error;
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
        self.update_owner(move |owner| {
            let now = owner.clock.now();
            match owner.model.cancel(now, seq, &mut owner.building.facts) {
                CancelOutcome::Ended(ended) => owner.building.end(ended, bytes::Bytes::new()),
                CancelOutcome::Requested(fence) => owner.calls.stop(seq, fence),
                // It ended in the meantime: its view shows how.
                CancelOutcome::NotActive => {}
            }
        })
        .await?;
        self.get(id).await
    }

    /// Reruns an operation that failed or was canceled, at the end of its group, or as the first of
    /// a group that is held for it.
    ///
    /// # Errors
    /// When there is no operation with that id, or it has not failed.
    pub async fn rerun(&self, id: OperationId) -> Result<OperationView> {
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
        let (ended, doubt) = (result.state, result.fault.clone());
        let draft = Draft { doubt, ..self.draft_for_rerun(&stored.operation)? };
        let (seq, at) = (id.seq(), stored.operation.at);
        let accepted = self
            .update_owner(move |owner| {
                let now = owner.clock.now();
                owner
                    .model
                    .reopen(now, (seq, at), ended, draft, &mut owner.building.facts)
                    .map(|()| owner.building.reopen(seq))
                    .map_err(|refusal| (refusal, now))
            })
            .await?;
        match accepted {
            Ok(()) => self.get(id).await,
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
        self.resolve_as_seen(id, resolution, SeenOutcome::default(), bytes::Bytes::new()).await
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
        result: bytes::Bytes,
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
                if let Some(ended) = ended.map_err(|_| None)? {
                    owner.building.end(ended, result);
                }
                Ok(())
            })
            .await?;
        match resolved {
            Ok(()) => self.get(id).await,
            Err(None) => Err(invalid_state_error(&view, "resolve")),
            Err(Some(problem)) => {
                Err(Error::new(ErrorKind::NotNow, format!("{id} has changed: {problem}")).operation(id))
            }
        }
    }

    /// Pauses a group.
    ///
    /// # Errors
    /// When a name is out of bounds.
    pub async fn pause(&self, group: &str, by: &str, reason: &str) -> Result<GroupView> {
        for (field, text, most) in [
            ("group", group, bounds::GROUP_LEN_MAX),
            ("by", by, bounds::NOTE_LEN_MAX),
            ("reason", reason, bounds::NOTE_LEN_MAX),
        ] {
            let least = usize::from(field != "reason");
            if !is_plain_text(text, least..=most) {
                let message = format!("{field} must be {least} to {most} bytes on one line");
                return Err(Error::new(ErrorKind::Invalid, message).field(field));
            }
        }
        let (group, by, reason): (Arc<str>, Arc<str>, Arc<str>) = (group.into(), by.into(), reason.into());
        let view = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.pause(now, &group, &by, &reason, &mut owner.building.facts);
            owner.model.group(&group)
        });
        view.await?.ok_or_else(|| Error::new(ErrorKind::Internal, "the group was paused and does not exist"))
    }

    /// Resumes a paused or held group. One that is neither stays as it is, so a resume can be
    /// repeated.
    ///
    /// # Errors
    /// When nothing is queued in the group and it is not stopped, or an outcome must be resolved
    /// first.
    pub async fn resume(&self, group: &str) -> Result<()> {
        let name: Arc<str> = group.into();
        let resumed = self.update_owner(move |owner| {
            let now = owner.clock.now();
            let held = owner.model.group(&name).and_then(|group| Some((group.head?, group.held?)));
            let resumed = owner.model.resume(now, &name, &mut owner.building.facts);
            // An unknown outcome stays unknown until it is resolved.
            if let (Ok(()), Some((head, held))) = (&resumed, held.filter(|(_, held)| !held.unknown)) {
                let head = ReleasedHead { seq: head.seq, accepted_at: head.at, held_since: held.since };
                owner.building.released.push(head);
            }
            resumed.map_err(|refusal| {
                let unresolved = match refusal {
                    ControlRefusal::Unresolved(seq) => {
                        owner.model.active(seq).map(|a| owner.id_of(seq, a.at))
                    }
                    _ => None,
                };
                (refusal, unresolved)
            })
        });
        match resumed.await? {
            Ok(()) | Err((ControlRefusal::NotStopped, _)) => Ok(()),
            Err((ControlRefusal::Unresolved(_), Some(id))) => {
                let message = format!("the outcome of {id} is unknown: resolve or cancel it first");
                Err(Error::new(ErrorKind::NotNow, message).operation(id))
            }
            Err(_) => Err(no_group_error(group)),
        }
    }

    /// Changes the figures of a limit.
    ///
    /// # Errors
    /// When there is no limit of that name, or the figures are out of bounds.
    pub async fn set_limit(&self, name: &str, shape: LimitShape) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let set = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.set_limit(now, &limit, shape, &mut owner.building.facts)?;
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        set.await?.map_err(|refusal| limit_refusal_error(refusal, name))
    }

    /// Restores the configured figures of a limit.
    ///
    /// # Errors
    /// When there is no limit of that name.
    pub async fn reset_limit(&self, name: &str) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let reset = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.reset_limit(now, &limit, &mut owner.building.facts)?;
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        reset.await?.map_err(|refusal| limit_refusal_error(refusal, name))
    }

    /// Reopens a limit that an upstream had closed.
    ///
    /// # Errors
    /// When there is no limit of that name.
    pub async fn thaw(&self, name: &str) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let thawed = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.thaw(now, &limit, &mut owner.building.facts)?;
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        thawed.await?.map_err(|refusal| limit_refusal_error(refusal, name))
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

fn limit_refusal_error(refusal: LimitRefusal, name: &str) -> Error {
    match refusal {
        LimitRefusal::Unknown => Error::new(ErrorKind::NoLimit, format!("there is no limit {name:?}")),
        LimitRefusal::OtherKind => {
            let message = format!(
                "{name:?} is of another kind: a cap takes at_once, a budget capacity and refill_per_s, a gate only open"
            );
            Error::new(ErrorKind::NotNow, message)
        }
        LimitRefusal::TooMany => Error::new(ErrorKind::Invalid, "there are too many limits already"),
        LimitRefusal::OutOfBounds => {
            let most = bounds::TOKENS_MAX;
            let message = format!("capacity, refill_per_s and at_once must be above 0 and at most {most}");
            Error::new(ErrorKind::Invalid, message).field("capacity")
        }
    }
}
