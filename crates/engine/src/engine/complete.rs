//! Completes an operation whose job ends elsewhere.

use bytes::Bytes;
use tidegate_core::{OperationId, Verdict};

use super::Engine;
use crate::carry::Report;
use crate::completion::{Completion, CompletionProof, CompletionReceipt};
use crate::error::{Error, ErrorKind, Result};

impl Engine {
    /// Reports how the job of an operation ended, with its result. The first end wins: one that
    /// comes later, or for an earlier attempt, changes nothing, and the receipt says so. It may
    /// come before the response to the submission.
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
            CompletionProof::Token(token) => {
                let key = self.options.completion_key.as_ref();
                let fence = key.and_then(|key| key.verify(id, token));
                Some(fence.ok_or_else(|| {
                    Error::new(ErrorKind::Unauthorized, "the completion token is not valid")
                })?)
            }
            CompletionProof::Authorized => None,
        };
        let view = self.get(id).await?;
        let (seq, verdict) = (id.seq(), Verdict::from(completion));
        let applied = self
            .update_owner(move |owner| {
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
                owner.settle(report).then(|| owner.calls.abandon(seq, fence))
            })
            .await?
            .is_some();
        if !applied && named.is_none() && !view.state.is_ended() {
            let message = format!("{id} is {}: it does not await a completion", view.state);
            return Err(Error::new(ErrorKind::NotNow, message).operation(id));
        }
        Ok(CompletionReceipt { applied, operation: self.get(id).await? })
    }
}
