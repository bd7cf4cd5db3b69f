//! A batch while it is being put together: what was decided, what must be answered and what leaves once it is
//! durable.

use tidegate_core::bounds::{CHARGES_MAX, COSTS_MAX};
use tidegate_core::fact::SettleEffect;
use tidegate_core::model::{Claim, EndedOperation};
use tidegate_core::{Fact, Seq};
use tidegate_store::costs::Cost;
use tidegate_store::log::{Batch, Lsn, StoredOperation, StoredResult};
use tidegate_store::outbox::OutboxId;

use super::{AcceptDecision, AcceptReply};
use crate::carry::Report;
use crate::error::{Error, Result};
use crate::events::Change;

/// Tells whoever asked whether the batch stands.
pub(crate) type BatchCallback = Box<dyn FnOnce(std::result::Result<(), &Error>) + Send>;

/// An answer that is given when the batch is durable.
pub(crate) enum Reply {
    /// To submissions.
    Accept(AcceptReply, Vec<Result<AcceptDecision>>),
    /// To anything else: told whether the batch stands.
    Other(BatchCallback),
}

#[derive(Default)]
pub(crate) struct OpenBatch {
    pub facts: Vec<Fact>,
    pub operations: Vec<StoredOperation>,
    pub results: Vec<StoredResult>,
    pub reopened: Vec<Seq>,
    /// Rows of the outbox that it settles: accepted, or found to be accepted already.
    pub drained: Vec<OutboxId>,
    /// What calls that it settles cost.
    pub costs: Vec<Cost>,
    pub replies: Vec<Reply>,
    pub claims: Vec<Claim>,
    pub ended: Vec<EndedOperation>,
    /// Reports in this batch, kept until it is durable: a call that was made is not forgotten.
    pub reports: Vec<Report>,
    pub commands: usize,
    /// Facts that need no append of their own: when calls left. Until the next one says so, a new
    /// owner takes them as not having left, which grants nothing too early.
    pub can_wait: usize,
    /// Bytes of payloads and answers in it.
    pub bytes: usize,
}

/// Bytes after which a batch takes no further answer: large ones must not hold up everybody who waits behind them.
const ANSWERS_LEN_MAX: usize = 4 * 1024 * 1024;
/// Bytes after which it takes nothing more.
const LEN_MAX: usize = 16 * 1024 * 1024;

/// A batch that is being written, with everything that may be done once it is durable. Nothing of
/// it is kept anywhere else before.
pub(crate) struct SealedBatch {
    /// The operations that it accepts.
    pub operations: Vec<StoredOperation>,
    pub replies: Vec<Reply>,
    pub claims: Vec<Claim>,
    pub ended: Vec<EndedOperation>,
    /// Operations whose outcome is unknown from now on.
    pub unknown: Vec<Seq>,
    pub reports: Vec<Report>,
    /// What those who listen hear.
    pub changes: Vec<Change>,
    /// Whether it keeps what calls cost.
    pub spends: bool,
    pub snapshot: Option<Vec<bytes::Bytes>>,
}

impl SealedBatch {
    /// Takes on what a later batch, which decided nothing, has to answer.
    pub(crate) fn join(&mut self, later: Self) {
        self.replies.extend(later.replies);
        self.reports.extend(later.reports);
    }
}

impl OpenBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands == 0 && self.facts.len() == self.can_wait
    }

    /// Whether there is nothing in it that must be written now.
    pub(crate) const fn has_no_decision(&self) -> bool {
        self.facts.len() == self.can_wait && self.drained.is_empty()
    }

    /// Whether another command may go into it.
    pub(crate) const fn has_room(&self, commands_max: usize) -> bool {
        self.commands < commands_max && self.bytes < LEN_MAX
    }

    /// Whether another answer may.
    pub(crate) const fn has_room_for_answers(&self, commands_max: usize) -> bool {
        self.commands < commands_max
            && self.bytes < ANSWERS_LEN_MAX
            && self.costs.len() + CHARGES_MAX <= COSTS_MAX
    }

    /// Splits it into what is written and what waits for that.
    pub(crate) fn seal(self, follows: Lsn) -> (Batch, SealedBatch) {
        let (operations, spends) = (self.operations.clone(), !self.costs.is_empty());
        let unknown = self.facts.iter().filter_map(|fact| match fact {
            Fact::Settled(settled) if matches!(settled.effect, SettleEffect::Held) => Some(settled.seq),
            _ => None,
        });
        let unknown = unknown.collect();
        let batch = Batch {
            facts: self.facts,
            operations: self.operations,
            results: self.results,
            reopened: self.reopened,
            drained: self.drained,
            costs: self.costs,
            follows: Some(follows),
        };
        let sealed = SealedBatch {
            operations,
            replies: self.replies,
            claims: self.claims,
            ended: self.ended,
            unknown,
            reports: self.reports,
            changes: Vec::new(),
            spends,
            snapshot: None,
        };
        (batch, sealed)
    }

    /// An operation that it accepts.
    pub(crate) fn operation(&self, seq: Seq) -> Option<&StoredOperation> {
        let place = self.operations.binary_search_by_key(&seq, |operation| operation.seq).ok()?;
        self.operations.get(place)
    }

    /// Keeps that an operation runs again. How it ended earlier in the same batch no longer stands: a store would keep it
    /// for the end of what is open.
    pub(crate) fn reopen(&mut self, seq: Seq) {
        self.results.retain(|result| result.seq != seq);
        self.reopened.push(seq);
    }

    /// Keeps what a call cost. Answers are taken only as long as there is room; what a recovery settles at once may be more,
    /// and then the rest is not kept.
    pub(crate) fn record_costs(&mut self, costs: &[Cost]) {
        let room = COSTS_MAX - self.costs.len();
        if costs.len() > room {
            tracing::warn!(
                costs = costs.len() - room,
                "too many calls were settled at once to keep what all of them cost"
            );
        }
        self.costs.extend(costs.iter().take(room).cloned());
    }

    /// Keeps how an operation ended, with what came back.
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
    use tidegate_core::{EndState, Time};

    use super::*;

    fn canceled(seq: u64) -> EndedOperation {
        EndedOperation {
            seq: Seq(seq),
            at: Time::from_millis(1),
            state: EndState::Canceled,
            attempt: 0,
            fault: None,
        }
    }

    /// OPS-9: called off and run again in one batch, an operation is open; called off once more, it has ended.
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
