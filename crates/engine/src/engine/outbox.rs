//! What waits in the store's outbox: read, accepted together with its leaving the outbox, or moved aside. When to look,
//! and how a row is read, is the caller's business.

use tidegate_store::outbox::{OutboxId, Waiting};
use tidegate_store::{Clock, Outbox};

use super::{Engine, stopping};
use crate::error::{Code, Error, Result};
use crate::owner::Accepted;
use crate::prepare::prepare;
use crate::submission::Submission;

impl Engine {
    /// The first rows that wait for this partition, at most so many.
    ///
    /// # Errors
    /// When the store has no outbox or cannot be read.
    pub async fn waiting(&self, most: usize) -> Result<Vec<Waiting>> {
        Ok(self.outbox()?.waiting(self.options.partition, most).await?)
    }

    /// Accepts what came out of the outbox, in order and in one step; each is answered for itself. What is accepted, or
    /// was before under its key, leaves the outbox with the same append. What is refused stays in it.
    pub async fn submit_waiting(&self, submissions: Vec<(OutboxId, Submission)>) -> Vec<Result<()>> {
        let now = self.clock.now();
        let (mut prepared, mut answers) = (Vec::new(), Vec::new());
        for (id, submission) in submissions {
            let ready = prepare(submission, &self.executors, &self.options, now);
            answers.push(ready.map(|mut ready| {
                ready.from = Some(id);
                prepared.push(ready);
            }));
        }
        let mut decided = self.decide(prepared).await.into_iter();
        let mut told = Vec::with_capacity(answers.len());
        for answer in answers {
            told.push(match answer {
                Ok(()) => match decided.next().unwrap_or_else(|| Err(stopping())) {
                    Ok(conflict @ Accepted::Conflict(_)) => self.receipt(conflict).await.map(drop),
                    other => other.map(drop),
                },
                Err(refused) => Err(refused),
            });
        }
        told
    }

    /// Moves a row of the outbox aside, with the reason.
    ///
    /// # Errors
    /// When the store has no outbox or cannot be written, or another node owns the partition now.
    pub async fn refuse_waiting(&self, id: OutboxId, why: &Error) -> Result<()> {
        let owner = *self.tenure.borrow();
        let code = why.code.to_string();
        Ok(self.outbox()?.refuse(owner, id, &code, &why.message).await?)
    }

    fn outbox(&self) -> Result<&dyn Outbox> {
        self.store.outbox().ok_or_else(|| Error::new(Code::Internal, "this store has no outbox"))
    }
}
