//! What a command has done to an operation, as its caller is told. A command that took effect never
//! answers with an error: during a handoff its caller would send it again to the next owner, which
//! would refuse it, or do it a second time.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::model::{ActiveOperation, EndedOperation};

use super::Engine;
use crate::owner::Owner;
use crate::view::OperationView;

/// How a command left an operation.
#[derive(Debug)]
pub(super) enum Effect {
    /// It is active; `None` if it has ended since.
    Active(Option<ActiveOperation>),
    Ended(EndedOperation, Bytes),
}

impl Effect {
    /// An operation that is still active.
    pub(super) fn active(owner: &Owner, seq: Seq) -> Self {
        Self::Active(owner.model.active(seq))
    }

    /// The operation as it was left.
    fn apply(self, view: OperationView) -> OperationView {
        let view = OperationView { finished_at: None, result: None, job_id: None, ..view };
        match self {
            Self::Active(None) => view,
            Self::Active(Some(active)) => OperationView {
                state: active.state,
                attempt: active.attempt,
                fault: active.fault,
                deadline_at: active.deadline,
                cancel_requested: active.cancel_requested,
                ..view
            },
            Self::Ended(ended, result) => OperationView {
                state: ended.state.into(),
                attempt: ended.attempt,
                fault: ended.fault,
                finished_at: Some(ended.at),
                result: Some(result).filter(|result| !result.is_empty()),
                ..view
            },
        }
    }
}

impl Engine {
    /// Returns an operation after a command about it, of which `before` is the view that the
    /// command was decided on: as it is now, or, where it cannot be read, as the command left it.
    pub(super) async fn view_after(&self, before: OperationView, effect: Effect) -> OperationView {
        self.get(before.id).await.unwrap_or_else(|_| effect.apply(before))
    }
}

impl Owner {
    /// Ends an operation as an operator commanded.
    pub(super) fn end_by_command(&mut self, ended: EndedOperation, result: Bytes) -> Effect {
        self.building.end(ended.clone(), result.clone());
        Effect::Ended(ended, result)
    }
}
