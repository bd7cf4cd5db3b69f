//! Lets generations follow the chain of their model: when the partition that has them is opened,
//! because the configuration may have changed since, and whenever the models change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Engine;
use tidegate_dispatch::{Dispatch, Generations};

/// After this time all are checked again: what was being accepted meanwhile may have the chain from
/// before, and the store may have been unavailable.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Follows the models until the engine stops.
pub(super) struct ChainFollower {
    pub dispatch: Dispatch,
    pub engine: Engine,
    pub generations: Generations,
}

impl ChainFollower {
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.follow_all() => {}
            _ = self.engine.stopped() => {}
        }
    }

    async fn follow_all(&self) {
        let mut changes = self.dispatch.model_changes();
        loop {
            changes.mark_unchanged();
            if !self.follow().await {
                tokio::time::sleep(AGAIN_AFTER).await;
                continue;
            }
            if tokio::time::timeout(AGAIN_AFTER, changes.changed()).await.is_ok() {
                continue;
            }
            if self.follow().await && changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns whether all of them follow now.
    async fn follow(&self) -> bool {
        match self.generations.follow_chains().await {
            Ok(followed) => {
                if followed.changed > 0 {
                    tracing::info!(count = followed.changed, "generations follow the changed models");
                }
                if followed.failed > 0 {
                    let models = names(&followed.gone);
                    tracing::warn!(
                        count = followed.failed,
                        models,
                        "generations failed: their model is gone"
                    );
                }
                true
            }
            Err(error) => {
                tracing::warn!(%error, "generations do not follow the chains of their models yet");
                false
            }
        }
    }
}

fn names(models: &BTreeSet<Arc<str>>) -> String {
    models.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ")
}
