//! The in-memory store passes every suite. Its data lives as long as the backend; every step is
//! done under one lock, so its state at any moment is also its crash image.

use std::sync::Arc;

use tidegate_contract::replay::{Effort, replay};
use tidegate_contract::{Backend, ManualClock, harness};
use tidegate_store::{Store, StoreFuture};
use tidegate_store_embedded::MemoryStore;

pub(crate) struct MemoryBackend {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl MemoryBackend {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::today();
        Self { store: Arc::new(MemoryStore::new(Arc::clone(&clock) as _)), clock }
    }
}

impl Backend for MemoryBackend {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async move { Ok(Arc::clone(&self.store) as _) })
    }

    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        self.open()
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }
}

/// OPS-8: ten thousand sequences, each cut at a random point and replayed.
#[test]
fn ten_thousand_replays_give_the_same_model() {
    harness::runtime().block_on(async {
        let effort = Effort { sequences: 10_000, image_every: 2 };
        replay(&MemoryBackend::new(), 92, effort).await;
    });
}

tidegate_contract::store_suites!(MemoryBackend::new());
