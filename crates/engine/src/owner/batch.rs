//! A batch under construction: the decisions, the replies to give and the calls to send once it is
//! durable.

use std::sync::Arc;

use tidegate_core::bounds::{CHARGES_MAX, COSTS_MAX};
use tidegate_core::fact::SettleEffect;
use tidegate_core::model::{Claim, EndedOperation};
use tidegate_core::{Fact, Seq, Time};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::costs::Cost;
use tidegate_store::log::{Batch, Lsn, StoredOperation, StoredResult};
use tidegate_store::outbox::OutboxId;

use super::spare_lists::SpareLists;
use super::{AcceptDecision, AcceptReply, Taker};
use crate::carry::BoxedReport;
use crate::error::{Error, Result};
use crate::events::Change;
use crate::journey::ReleasedHead;

/// Reports to a caller whether the batch is durable.
pub(crate) type BatchCallback = Box<dyn FnOnce(std::result::Result<(), &Error>) + Send>;

/// A reply that is given when the batch is durable.
pub(crate) enum Reply {
    /// A reply to submissions.
    Accept(AcceptReply, Vec<Result<AcceptDecision>>),
    /// A reply to anything else: reports whether the batch is durable.
    Other(BatchCallback),
}

#[derive(Default)]
pub(crate) struct OpenBatch {
    pub facts: Vec<Fact>,
    pub operations: Vec<Arc<StoredOperation>>,
    pub results: Vec<StoredResult>,
    pub reopened: Vec<Seq>,
    /// Outbox rows that it settles: accepted, or recognized as accepted before.
    pub drained: Vec<OutboxId>,
    /// The costs of the calls that it settles.
    pub costs: Vec<Cost>,
    /// Attempts whose job was accepted, or ended.
    pub attempts: Vec<StoredAttempt>,
    pub replies: Vec<Reply>,
    pub claims: Vec<Claim>,
    /// Callers that ask for work for remote workers, and what is claimed for them.
    pub takers: Vec<Taker>,
    pub ended: Vec<EndedOperation>,
    /// The first operations of held groups that it resumes.
    pub released: Vec<ReleasedHead>,
    /// Reports in this batch, kept until it is durable: the report of a call must not be lost.
    pub reports: Vec<BoxedReport>,
    pub commands: usize,
    /// The number of facts that need no append of their own: the times at which calls were sent.
    /// Until the next append writes them, a new owner assumes the calls were not sent, which grants
    /// nothing too early.
    pub can_wait: usize,
    /// Bytes of payloads and responses in it.
    pub bytes: usize,
}

/// The size in bytes above which a batch takes no further response: large responses must not hold
/// up everyone waiting behind them.
const ANSWERS_LEN_MAX: usize = 4 * 1024 * 1024;
/// The most entries of a list that the next batch has room for from the beginning.
const ROOM_MAX: usize = 512;
/// The size in bytes above which a batch takes nothing more.
const LEN_MAX: usize = 16 * 1024 * 1024;

/// A batch that is being written, with everything to do once it is durable. Until then none of it
/// is kept anywhere else.
pub(crate) struct SealedBatch {
    /// The operations that it accepts.
    pub operations: Vec<Arc<StoredOperation>>,
    pub replies: Vec<Reply>,
    pub claims: Vec<Claim>,
    pub takers: Vec<Taker>,
    pub ended: Vec<EndedOperation>,
    /// Operations that it reopens.
    pub reopened: Vec<Seq>,
    /// When it was decided.
    pub at: Time,
    /// Operations whose outcome is unknown from now on.
    pub unknown: Vec<Seq>,
    /// Operations of unknown outcome that it repeats.
    pub repeated: Vec<Seq>,
    /// The limits that throttled calls closed, once for each call.
    pub closed: Vec<Arc<str>>,
    /// The first operations of held groups that it resumes.
    pub released: Vec<ReleasedHead>,
    pub reports: Vec<BoxedReport>,
    /// The number of commands in it.
    pub commands: usize,
    /// The changes for listeners.
    pub changes: Vec<Change>,
    /// Whether it records call costs.
    pub spends: bool,
    pub snapshot: Option<Vec<bytes::Bytes>>,
}

impl SealedBatch {
    /// Takes over the replies of a later batch that decided nothing.
    pub(crate) fn join(&mut self, later: Self) {
        self.replies.extend(later.replies);
        self.reports.extend(later.reports);
        self.takers.extend(later.takers);
    }
}

impl OpenBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands == 0 && self.facts.len() == self.can_wait
    }

    /// Whether it contains nothing that must be written now.
    pub(crate) const fn has_no_decision(&self) -> bool {
        self.facts.len() == self.can_wait && self.drained.is_empty()
    }

    /// Whether another command fits.
    pub(crate) const fn has_room(&self, commands_max: usize) -> bool {
        self.commands < commands_max && self.bytes < LEN_MAX
    }

    /// Whether another response fits.
    pub(crate) const fn has_room_for_answers(&self, commands_max: usize) -> bool {
        self.commands < commands_max
            && self.bytes < ANSWERS_LEN_MAX
            && self.costs.len() + CHARGES_MAX <= COSTS_MAX
    }

    /// Creates the next batch. The lists that go to the store get room for about as much as this
    /// one holds, because a list that grows is copied each time; the others use spare ones.
    pub(crate) fn next(&self, spare: SpareLists) -> Self {
        fn room<T>(list: &[T]) -> Vec<T> {
            Vec::with_capacity(list.len().min(ROOM_MAX))
        }
        let SpareLists { replies, claims, ended, reports } = spare;
        Self {
            facts: room(&self.facts),
            operations: room(&self.operations),
            results: room(&self.results),
            replies,
            claims,
            ended,
            reports,
            ..Self::default()
        }
    }

    /// Splits it into the part to write and the part that waits for the write.
    pub(crate) fn seal(self, follows: Lsn, at: Time) -> (Batch, SealedBatch) {
        let (operations, spends) = (self.operations.clone(), !self.costs.is_empty());
        let reopened = self.reopened.clone();
        let unknown = self.facts.iter().filter_map(|fact| match fact {
            Fact::Settled(settled) if matches!(settled.effect, SettleEffect::Held) => Some(settled.seq),
            _ => None,
        });
        let unknown = unknown.collect();
        let repeated = self.facts.iter().filter_map(|fact| match fact {
            Fact::Repeated { seq, .. } => Some(*seq),
            _ => None,
        });
        let repeated = repeated.collect();
        let closed = self.facts.iter().filter_map(|fact| match fact {
            Fact::Settled(settled) => match &settled.effect {
                SettleEffect::Throttled { closed, .. } => Some(closed),
                _ => None,
            },
            _ => None,
        });
        let closed = closed.flatten().cloned().collect();
        let batch = Batch {
            facts: self.facts,
            operations: self.operations,
            results: self.results,
            reopened: self.reopened,
            drained: self.drained,
            costs: self.costs,
            attempts: self.attempts,
            follows: Some(follows),
        };
        let sealed = SealedBatch {
            operations,
            replies: self.replies,
            claims: self.claims,
            takers: self.takers,
            ended: self.ended,
            reopened,
            at,
            unknown,
            repeated,
            closed,
            released: self.released,
            reports: self.reports,
            commands: self.commands,
            changes: Vec::new(),
            spends,
            snapshot: None,
        };
        (batch, sealed)
    }

    /// Returns an operation that it accepts.
    pub(crate) fn operation(&self, seq: Seq) -> Option<&StoredOperation> {
        let place = self.operations.binary_search_by_key(&seq, |operation| operation.seq).ok()?;
        self.operations.get(place).map(|operation| &**operation)
    }

    /// Records that an operation runs again. Its end earlier in the same batch is dropped: a store
    /// would otherwise take it for the end of the reopened operation.
    pub(crate) fn reopen(&mut self, seq: Seq) {
        self.results.retain(|result| result.seq != seq);
        self.reopened.push(seq);
    }

    /// Records what a call cost. Responses are taken only while there is room; a recovery may
    /// settle more at once, and then the rest is not recorded.
    pub(crate) fn record_costs(&mut self, costs: &[Cost]) {
        let room = COSTS_MAX - self.costs.len();
        if costs.len() > room {
            tracing::warn!(
                costs = costs.len() - room,
                "too many calls were settled at once to record all of their costs"
            );
        }
        self.costs.extend(costs.iter().take(room).cloned());
    }

    /// Records how an operation ended, with its response.
    pub(crate) fn end(&mut self, ended: EndedOperation, body: bytes::Bytes) {
        self.bytes += body.len();
        self.results.push(StoredResult {
            seq: ended.seq,
            at: ended.at,
            state: ended.state,
            attempt: ended.attempt,
            fault: ended.fault.clone(),
            body,
        });
        self.ended.push(ended);
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::EndState;

    use super::*;

    fn canceled(seq: u64) -> EndedOperation {
        EndedOperation {
            seq: Seq(seq),
            at: Time::from_millis(1),
            state: EndState::Canceled,
            attempt: 0,
            fault: None,
            next: None,
            identity: None,
        }
    }

    /// OPS-9: an operation canceled and rerun in one batch is open; canceled again, it has ended.
    #[test]
    fn ops_9_the_last_order_of_a_batch_stands() {
        let mut building = OpenBatch::default();
        building.end(canceled(1), bytes::Bytes::new());
        building.end(canceled(2), bytes::Bytes::new());
        building.reopen(Seq(2));
        let ended =
            |building: &OpenBatch| building.results.iter().map(|result| result.seq.0).collect::<Vec<_>>();
        assert_eq!((ended(&building), &building.reopened), (vec![1], &vec![Seq(2)]));
        building.end(canceled(2), bytes::Bytes::new());
        assert_eq!(ended(&building), [1, 2]);
    }
}
