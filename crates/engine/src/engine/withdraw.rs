//! Cancels operations that no one waits for any more, as long as they are not in flight.

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
}
