//! Cancels operations that no one waits for any more; a call in flight completes.

use tidegate_core::OperationId;
use tidegate_store::Clock;

use super::Engine;
use crate::error::Result;
use crate::view::OperationView;

impl Engine {
    /// Cancels an operation unless it has ended or its call is in flight, in which case the call
    /// completes. The view shows which.
    ///
    /// # Errors
    /// When there is no operation with that id, or the engine has stopped.
    pub async fn withdraw(&self, id: OperationId) -> Result<OperationView> {
        let seq = id.seq();
        self.update_owner(move |owner| {
            let now = owner.clock.now();
            if let Some(ended) = owner.model.withdraw(now, seq, &mut owner.building.facts) {
                owner.building.end(ended, bytes::Bytes::new());
            }
        })
        .await?;
        self.get(id).await
    }

    /// Cancels an operation that no one waits for any more. A call in flight completes, and if it
    /// does not end the operation, the operation is canceled then instead of being retried.
    ///
    /// # Errors
    /// When there is no operation with that id, or the engine has stopped.
    pub async fn abandon(&self, id: OperationId) -> Result<OperationView> {
        let seq = id.seq();
        self.update_owner(move |owner| {
            let now = owner.clock.now();
            if let Some(ended) = owner.model.abandon(now, seq, &mut owner.building.facts) {
                owner.building.end(ended, bytes::Bytes::new());
            }
        })
        .await?;
        self.get(id).await
    }
}
