//! Cancels operations that no one waits for any more; a call in flight completes.

use tidegate_core::model::EndedOperation;
use tidegate_core::{Fact, Model, OperationId, Seq, Time};
use tidegate_store::Clock;

use super::Engine;
use crate::error::Result;
use crate::view::OperationView;

/// A command of the model that ends an operation, unless it is running or has ended.
type EndCommand = fn(&mut Model, Time, Seq, &mut Vec<Fact>) -> Option<EndedOperation>;

impl Engine {
    /// Cancels an operation unless it has ended or its call is in flight, in which case the call
    /// completes. The view shows which.
    ///
    /// # Errors
    /// When there is no operation with that id, or the engine has stopped.
    pub async fn withdraw(&self, id: OperationId) -> Result<OperationView> {
        self.end_unless_running(id, Model::withdraw).await
    }

    /// Cancels an operation that no one waits for any more. A call in flight completes, and if it
    /// does not end the operation, the operation is canceled then instead of being retried.
    ///
    /// # Errors
    /// When there is no operation with that id, or the engine has stopped.
    pub async fn abandon(&self, id: OperationId) -> Result<OperationView> {
        self.end_unless_running(id, Model::abandon).await
    }

    async fn end_unless_running(&self, id: OperationId, end: EndCommand) -> Result<OperationView> {
        self.update_owner(move |owner| {
            let now = owner.clock.now();
            if let Some(ended) = end(&mut owner.model, now, id.seq(), &mut owner.building.facts) {
                owner.building.end(ended, bytes::Bytes::new());
            }
        })
        .await?;
        self.get(id).await
    }
}
