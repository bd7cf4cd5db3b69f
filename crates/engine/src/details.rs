//! What an operation asks for, and what became of its attempts: for the person who has to decide
//! what became of a call. Lists get the line of each request; one operation gets all of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use tidegate_core::{OperationId, Seq};
use tidegate_store::StoreErrorKind;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::StoredOperation;
use tidegate_upstream::RequestView;

use crate::engine::Engine;
use crate::envelope::Envelope;
use crate::error::Result;
use crate::seal;
use crate::view::{AttemptView, OperationDetails, OperationOutline, OperationView};

/// How many payloads are read at once for the lines of a list: each may have a mebibyte.
const LINES_AT_ONCE: usize = 16;

impl Engine {
    /// Returns the request of an operation, as far as it may be shown, and its attempts. The view
    /// is one that [`Engine::get`] or a wait returned.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn details(&self, view: &OperationView) -> Result<OperationDetails> {
        let payload = Some(&view.payload.0).filter(|payload| !payload.is_empty());
        let request = payload.map(|payload| match self.executors.get(&view.kind) {
            Some(executor) => executor.request_view(payload),
            None => RequestView::of_payload(payload),
        });
        let id = view.id;
        let journey = self.query_owner(move |owner| {
            let active = owner.model.active(id.seq());
            (owner.journey_times(id, active.as_ref()), owner.seen_attempts(id))
        });
        let attempts = self.attempts_of(view).await?;
        let (journey, seen_attempts) = journey.await?;
        Ok(OperationDetails { request, attempts, journey, seen_attempts })
    }

    /// Returns the attempts of an operation that the store remembers, in order.
    pub(crate) async fn attempts_of(&self, view: &OperationView) -> Result<Vec<AttemptView>> {
        let read = self.store.read_attempts(self.options.partition, vec![view.id.seq()]).await?;
        let mut attempts: Vec<StoredAttempt> = read.into_iter().flatten().collect();
        attempts.sort_unstable_by_key(|attempt| attempt.fence);
        Ok(attempts.into_iter().map(|attempt| self.attempt_view(view, attempt)).collect())
    }

    fn attempt_view(&self, view: &OperationView, attempt: StoredAttempt) -> AttemptView {
        // Of a job that was accepted, the memo is what the executor had to remember.
        let is_job = attempt.ended_at != Some(attempt.at);
        let response = match self.executors.get(&view.kind) {
            Some(executor) if is_job => Bytes::copy_from_slice(executor.job_response(&attempt.memo)),
            None if is_job => Bytes::new(),
            _ => attempt.memo,
        };
        AttemptView {
            number: attempt.number,
            state: attempt.state,
            at: attempt.at,
            ended_at: attempt.ended_at,
            job_id: attempt.external_id,
            cost: attempt.cost,
            response: Some(response).filter(|response| !response.is_empty()),
        }
    }

    /// Reads what these operations are, in short; those that are damaged or not stored are left
    /// out.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn outlines(&self, seqs: &[Seq]) -> Result<BTreeMap<Seq, OperationOutline>> {
        let mut outlines = BTreeMap::new();
        for seqs in seqs.chunks(LINES_AT_ONCE) {
            for stored in self.load_intact(seqs.to_vec()).await?.into_iter().flatten() {
                let executor = self.executors.get(&stored.kind);
                let outline = OperationOutline {
                    id: OperationId::new(stored.at, self.options.partition, stored.seq),
                    upstream: Envelope::decode(&stored.envelope).upstream,
                    request: executor.and_then(|executor| executor.request_line(&stored.payload)),
                };
                outlines.insert(stored.seq, outline);
            }
        }
        Ok(outlines)
    }

    /// Adds the request lines to the operations of a page that have none yet. A request that is
    /// damaged has none.
    pub(crate) async fn add_request_lines(&self, page: &mut [OperationView]) -> Result<()> {
        let has_none = |view: &&mut OperationView| view.request.is_none() && view.upstream.is_some();
        let mut missing: Vec<&mut OperationView> = page.iter_mut().filter(has_none).collect();
        for views in missing.chunks_mut(LINES_AT_ONCE) {
            let seqs = views.iter().map(|view| view.id.seq()).collect();
            for (view, stored) in views.iter_mut().zip(self.load_intact(seqs).await?) {
                view.request =
                    stored.and_then(|stored| self.executors.get(&stored.kind)?.request_line(&stored.payload));
            }
        }
        Ok(())
    }

    /// Reads operations, in that order; `None` for those that are damaged or not stored.
    async fn load_intact(&self, seqs: Vec<Seq>) -> Result<Vec<Option<StoredOperation>>> {
        let load = async |seqs| match self.store.load_operations(self.options.partition, seqs).await {
            Err(error) if error.kind() == StoreErrorKind::Unreadable => Ok(None),
            stored => stored.map(Some),
        };
        let mut stored = match load(seqs.clone()).await? {
            Some(stored) => stored,
            // One of them is damaged: read each separately.
            None => {
                let mut each = Vec::with_capacity(seqs.len());
                for seq in seqs {
                    each.push(load(vec![seq]).await?.and_then(|mut one| one.pop().flatten()));
                }
                each
            }
        };
        for one in &mut stored {
            *one = one.take().filter(|stored| seal::check(stored).is_ok());
        }
        Ok(stored)
    }
}
