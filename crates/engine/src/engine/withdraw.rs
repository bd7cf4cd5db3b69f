//! Calling off what nobody waits for any more, as long as it is not under way.

use tidegate_core::model::CancelOutcome;
use tidegate_core::{OperationId, State};
use tidegate_store::Clock;

use super::Engine;
use crate::error::Result;
use crate::view::OperationView;

impl Engine {
    /// Calls an operation off unless a call is under way, which goes on to its end, or it has ended. The view says
    /// which.
    ///
    /// # Errors
    /// When there is none of that id, or the engine has stopped.
    pub async fn withdraw(&self, id: OperationId) -> Result<OperationView> {
        let seq = id.seq();
        self.update_owner(move |owner| {
            let is_idle = owner.model.active(seq).is_some_and(|active| active.state != State::Running);
            let now = owner.clock.now();
            if is_idle
                && let CancelOutcome::Ended(ended) = owner.model.cancel(now, seq, &mut owner.building.facts)
            {
                owner.building.end(ended, bytes::Bytes::new());
            }
        })
        .await?;
        self.get(id).await
    }
}
