//! Drains the store's outbox: reads rows, accepts them together with their removal from the outbox,
//! or moves them aside. When to look, and how to parse a row, is up to the caller.

use tidegate_core::{ErrorCode, Seq};
use tidegate_store::outbox::{OutboxId, OutboxRow};
use tidegate_store::{Clock, Outbox};

use super::{Engine, Request, stopping_error};
use crate::error::{Error, ErrorKind, Result};
use crate::owner::AcceptDecision;
use crate::prepare::prepare;
use crate::submission::Submission;

impl Engine {
    /// Returns the first rows that wait for this partition, at most `most`.
    ///
    /// # Errors
    /// When the store has no outbox or cannot be read.
    pub async fn outbox_rows(&self, most: usize) -> Result<Vec<OutboxRow>> {
        Ok(self.outbox()?.waiting_rows(self.options.partition, most).await?)
    }

    /// Accepts submissions from the outbox, in order and in one step, with one result for each.
    /// Those that are accepted, or were accepted before under their key, leave the outbox with the
    /// same append. Refused ones stay in it.
    pub async fn submit_outbox_rows(&self, submissions: Vec<(OutboxId, Submission)>) -> Vec<Result<()>> {
        let now = self.clock.now();
        let (mut prepared, mut answers) = (Vec::new(), Vec::new());
        for (id, submission) in submissions {
            let ready = prepare(submission.clone(), &self.executors, &self.options, now);
            answers.push(ready.map(|mut ready| {
                ready.from = Some(id);
                prepared.push(ready);
                (id, submission)
            }));
        }
        let mut decided = self.decide(prepared).await.into_iter();
        let mut told = Vec::with_capacity(answers.len());
        for answer in answers {
            told.push(match answer {
                Ok((id, submission)) => match decided.next().unwrap_or_else(|| Err(stopping_error())) {
                    Ok(AcceptDecision::Conflict(seq)) => self.submit_as_stored(id, submission, seq).await,
                    other => other.map(drop),
                },
                Err(refused) => Err(refused),
            });
        }
        told
    }

    /// Accepts a submission that was accepted before in a different spelling, so that it leaves the
    /// outbox; refuses a different request.
    async fn submit_as_stored(&self, id: OutboxId, submission: Submission, seq: Seq) -> Result<()> {
        let mut ready = prepare(submission.clone(), &self.executors, &self.options, self.clock.now())?;
        let request = Request::of(&ready);
        if self.difference(seq, request.as_ref()).await?.is_some() {
            return self.receipt(AcceptDecision::Conflict(seq), request.as_ref()).await.map(drop);
        }
        let payload = self.stored(seq).await?.operation.payload;
        let stored = Submission { payload, ..submission };
        ready = prepare(stored, &self.executors, &self.options, self.clock.now())?;
        ready.from = Some(id);
        let decided = self.decide(vec![ready]).await.pop().unwrap_or_else(|| Err(stopping_error()))?;
        self.receipt(decided, request.as_ref()).await.map(drop)
    }

    /// Moves an outbox row aside, with the reason.
    ///
    /// # Errors
    /// When the store has no outbox or cannot be written, or another node owns the partition now.
    pub async fn refuse_outbox_row(&self, id: OutboxId, code: ErrorCode, problem: &str) -> Result<()> {
        let owner = *self.ownership.borrow();
        Ok(self.outbox()?.refuse(owner, id, &code.to_string(), problem).await?)
    }

    fn outbox(&self) -> Result<&dyn Outbox> {
        self.store.outbox().ok_or_else(|| Error::new(ErrorKind::Internal, "this store has no outbox"))
    }
}
