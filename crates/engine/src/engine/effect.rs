//! What a command has done to an operation, as its caller is told. A command that took effect never
//! answers with an error: during a handoff its caller would send it again to the next owner, which
//! would refuse it, or do it a second time.

use bytes::Bytes;
use tidegate_core::model::{ActiveOperation, EndedOperation};

use super::Engine;
use crate::error::Result;
use crate::owner::Owner;
use crate::view::OperationView;

/// How a command left an operation.
#[derive(Debug)]
pub(super) enum Effect {
    Active(ActiveOperation),
    Ended(EndedOperation, Bytes),
}

impl Effect {
    /// The operation as it was left.
    fn apply(self, view: OperationView) -> OperationView {
        let view = OperationView { finished_at: None, result: None, job_id: None, ..view };
        match self {
            Self::Active(active) => OperationView {
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
    /// command was decided on. Without an effect, and where it can be read, it is as it is now.
    pub(super) async fn view_after(
        &self,
        before: OperationView,
        effect: Option<Effect>,
    ) -> Result<OperationView> {
        match (self.get(before.id).await, effect) {
            (Err(_), Some(effect)) => Ok(effect.apply(before)),
            (view, _) => view,
        }
    }
}

impl Owner {
    /// Ends an operation as an operator commanded.
    pub(super) fn end_by_command(&mut self, ended: EndedOperation, result: Bytes) -> Effect {
        self.building.end(ended.clone(), result.clone());
        Effect::Ended(ended, result)
    }
}
