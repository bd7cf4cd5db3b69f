//! A source that several nodes have: of those that receive a question, one answers it. If that one
//! dies, its asker asks again, which is another question.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_hydration::{EntityQuestion, EntitySource, SourceAnswer, SourceFuture};
use tidegate_store::Store;
use tokio::time::timeout;

/// How long a question stays claimed: longer than any bus takes to deliver it to the others.
const CLAIM_TTL: Duration = Duration::from_secs(10);
/// How long the store may take; then every node answers.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct ClaimedSource {
    source: Arc<dyn EntitySource>,
    store: Arc<dyn Store>,
}

impl ClaimedSource {
    pub(super) fn new(source: Arc<dyn EntitySource>, store: Arc<dyn Store>) -> Self {
        Self { source, store }
    }

    async fn is_claimed_elsewhere(&self, question: &EntityQuestion) -> bool {
        let tenant = question.key.tenant().as_bytes();
        let id = Fingerprint::of("hydration answer").part(tenant);
        let id = hex(&id.part(question.correlation_id.as_str().as_bytes()).finish());
        let claimed = timeout(STORE_TIMEOUT, self.store.open_window(&id, 1, CLAIM_TTL)).await;
        matches!(claimed, Ok(Ok(OpenWindowOutcome::Wait(_))))
    }
}

impl EntitySource for ClaimedSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(async {
            if self.is_claimed_elsewhere(question).await {
                return Ok(SourceAnswer::Later);
            }
            self.source.load(question).await
        })
    }

    fn module(&self) -> Option<String> {
        self.source.module()
    }
}
