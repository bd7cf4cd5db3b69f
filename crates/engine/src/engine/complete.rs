//! Completes an operation whose job ends elsewhere.

use bytes::Bytes;
use tidegate_core::{Fence, OperationId, State, Verdict};
use tidegate_store::Clock;
use tidegate_store::attempt::{AttemptState, StoredAttempt};
use tidegate_upstream::CallbackMeaning;

use super::Engine;
use crate::carry::Report;
use crate::completion::{Completion, CompletionProof, CompletionReceipt};
use crate::error::{Error, ErrorKind, Result};

impl Engine {
    /// Reports how the job of an operation ended, with its result. The first end wins: one that
    /// comes later, or for an earlier attempt, changes nothing, and the receipt says so. It may
    /// come before the response to the submission. An unknown outcome is no end: the token of its
    /// attempt still resolves it, until another attempt is made.
    ///
    /// # Errors
    /// When the token is not valid, there is no such operation, or it does not await a completion.
    pub async fn complete(
        &self,
        id: OperationId,
        proof: CompletionProof,
        completion: Completion,
        body: Bytes,
    ) -> Result<CompletionReceipt> {
        // First of all, so that a stranger learns nothing about the operation.
        let named = match &proof {
            CompletionProof::Token(token) => Some(self.verify_token(id, token)?),
            CompletionProof::Authorized => None,
        };
        let view = self.get(id).await?;
        let verdict = Verdict::from(completion);
        let mut applied = self.settle_completion(id, named, verdict.clone(), body.clone()).await?;
        if !applied && named.is_none() && !view.state.is_ended() {
            let message = match view.state {
                State::Unknown => format!("the outcome of {id} is unknown: resolve it"),
                state => format!("{id} is {state}: it does not await a completion"),
            };
            return Err(Error::new(ErrorKind::NotNow, message).operation(id));
        }
        let mut operation = self.get(id).await?;
        let may_resolve = matches!(operation.state, State::Unknown | State::Waiting | State::Queued);
        if let Some(fence) = named.filter(|_| !applied && may_resolve) {
            applied = self.resolve_late(id, fence, verdict, body).await?;
            operation = self.get(id).await?;
        }
        Ok(CompletionReceipt { applied, operation })
    }

    /// Reads a callback in the service's own format: it ends the job as the submission's rules say,
    /// or has the job polled at once. Returns `None` when no rule says how to read it.
    ///
    /// # Errors
    /// When the token is not valid, or there is no such operation.
    pub async fn receive_callback(
        &self,
        id: OperationId,
        token: &str,
        content: &[u8],
        encode: impl FnOnce(&Completion) -> Bytes + Send,
    ) -> Result<Option<CompletionReceipt>> {
        let fence = self.verify_token(id, token)?;
        let operation = self.get(id).await?;
        let stored = self.stored(id.seq()).await?.operation;
        let executor = self.executors.get(&stored.kind);
        let meaning = executor.and_then(|executor| executor.read_callback(&stored.payload, content));
        let completion = match meaning {
            Some(CallbackMeaning::Succeeded) => Completion::Succeeded,
            Some(CallbackMeaning::Failed(fault)) => Completion::Failed(fault),
            Some(CallbackMeaning::NotFinished) => {
                let seq = id.seq();
                self.update_owner(move |owner| {
                    let now = owner.clock.now();
                    owner.model.poll_now(now, seq, fence, &mut owner.building.facts)
                })
                .await?;
                return Ok(Some(CompletionReceipt { applied: false, operation }));
            }
            None => return Ok(None),
        };
        let body = encode(&completion);
        self.complete(id, CompletionProof::Token(token.to_owned()), completion, body).await.map(Some)
    }

    /// The claim that a token authorizes.
    pub(super) fn verify_token(&self, id: OperationId, token: &str) -> Result<Fence> {
        let fence = self.options.completion_key.as_ref().and_then(|key| key.verify(id, token));
        fence.ok_or_else(|| Error::new(ErrorKind::Unauthorized, "the completion token is not valid"))
    }

    /// Settles the claim that is named, or the current one if its job is awaited; returns whether
    /// it was current.
    async fn settle_completion(
        &self,
        id: OperationId,
        named: Option<Fence>,
        verdict: Verdict,
        body: Bytes,
    ) -> Result<bool> {
        let seq = id.seq();
        let settled = self.update_owner(move |owner| {
            let fence = named.or_else(|| owner.model.current_fence(seq))?;
            let status = owner.model.claim_status(seq, fence)?;
            if owner.id_of(seq, status.accepted_at) != id {
                return None;
            }
            if named.is_none() && status.awaiting_since.is_none() {
                return None;
            }
            let accepted_at = Some(status.accepted_at);
            let report = Report { accepted_at, body, ..Report::without_call(seq, fence, verdict) };
            let is_settled = owner.settle(report.into());
            if let Some(worker) = status.worker.filter(|_| is_settled) {
                owner.calls.abandon(seq, worker);
            }
            is_settled.then_some(())
        });
        Ok(settled.await?.is_some())
    }

    /// Resolves an unknown outcome by a report about the attempt that left it; returns whether it
    /// was that attempt.
    async fn resolve_late(
        &self,
        id: OperationId,
        fence: Fence,
        verdict: Verdict,
        body: Bytes,
    ) -> Result<bool> {
        let seq = id.seq();
        let attempts = self.store.read_attempts(self.options.partition, vec![seq]).await?;
        let last = attempts.into_iter().flatten().max_by_key(|attempt| attempt.fence);
        let is_that = |one: &StoredAttempt| one.fence == fence && one.state == AttemptState::Unknown;
        let Some(attempt) = last.filter(is_that) else { return Ok(false) };
        let resolved = self.update_owner(move |owner| {
            let now = owner.clock.now();
            let facts = &mut owner.building.facts;
            let ended = owner.model.resolve_late(now, seq, attempt.number, verdict, facts).ok()?;
            owner.record_late(attempt, ended.as_ref().map(|ended| ended.state), now);
            if let Some(ended) = ended {
                owner.building.end(ended, body);
            }
            Some(())
        });
        Ok(resolved.await?.is_some())
    }
}
