//! One question among all nodes that share a store. A question opens a short window there; a node
//! that finds one open does not publish and waits for the other's answer, which every node
//! receives. The window is shorter than the time to a retry, so a node that dies or misses the
//! answer costs the others that time and nothing else. Without the store every node asks for
//! itself.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::hydration::{HydrationMode, Question};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_store::SharedState;
use tokio::time::timeout;

use crate::counters::HydrationCount;

/// How long the store may take; then the node asks for itself.
const STORE_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) struct SharedWindows {
    store: Arc<dyn SharedState>,
    ttl: Duration,
}

impl SharedWindows {
    pub(super) fn new(store: Arc<dyn SharedState>, retry_backoff: Duration) -> Self {
        Self { store, ttl: retry_backoff * 3 / 4 }
    }

    /// Whether this node is to publish the question.
    pub(super) async fn admits(&self, question: &Question) -> bool {
        let key = window_key(question);
        let opened = self.store.open_window(&key, level(&question.mode), self.ttl);
        match timeout(STORE_TIMEOUT, opened).await {
            Ok(Ok(OpenWindowOutcome::Wait(_))) => {
                HydrationCount::AskedElsewhere.count();
                false
            }
            Ok(Err(error)) => {
                tracing::warn!(target: "tidegate::hydration", "the shared window failed: {error}");
                true
            }
            Ok(Ok(OpenWindowOutcome::Ask(_))) | Err(_) => true,
        }
    }
}

fn window_key(question: &Question) -> String {
    let parts = [question.key.tenant(), question.key.entity_type(), question.key.id()];
    let start = Fingerprint::of("hydration");
    hex(&parts.iter().fold(start, |hash, part| hash.part(part.as_bytes())).finish())
}

/// Levels as the store compares them. Of two that want different fields the later one is answered
/// by its retry.
const fn level(mode: &HydrationMode) -> u8 {
    match mode {
        HydrationMode::Existence => 1,
        HydrationMode::Partial(_) => 2,
        HydrationMode::Full => 3,
    }
}
