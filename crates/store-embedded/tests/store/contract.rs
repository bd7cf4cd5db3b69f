//! The suites that every store must pass, on memory and on a directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tidegate_contract::{Backend, ManualClock};
use tidegate_store::{Store, StoreFuture};
use tidegate_store_embedded::{EmbeddedStore, MemoryStore, Options};

/// Memory that survives its store, as if it were a disk.
struct InMemoryBackend {
    clock: Arc<ManualClock>,
    kept: Arc<MemoryStore>,
}

impl InMemoryBackend {
    fn new() -> Self {
        let clock = ManualClock::today();
        Self { kept: Arc::new(MemoryStore::new(Arc::clone(&clock) as _)), clock }
    }
}

impl Backend for InMemoryBackend {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Ok(Arc::clone(&self.kept) as _) })
    }

    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        self.open()
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }
}

/// A directory, and the images that were taken of it.
struct OnDiskBackend {
    clock: Arc<ManualClock>,
    dir: TempDir,
    images: Mutex<Vec<TempDir>>,
}

impl OnDiskBackend {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { clock: ManualClock::today(), dir, images: Mutex::default() }
    }

    fn store(&self, dir: &Path) -> tidegate_store::Result<Arc<dyn Store>> {
        Ok(Arc::new(EmbeddedStore::open(dir, Options::new(Arc::clone(&self.clock) as _))?))
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

impl Backend for OnDiskBackend {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async { self.store(&self.data()) })
    }

    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async {
            let image = crate::image::of(&self.data());
            let store = self.store(image.path());
            self.images.lock().expect("nobody panicked").push(image);
            store
        })
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }
}

mod memory {
    tidegate_contract::store_suites!(super::InMemoryBackend::new());
}

mod embedded {
    tidegate_contract::store_suites!(super::OnDiskBackend::new());
}

/// OPS-8: ten thousand sequences through a directory, each cut somewhere, in four parts so that
/// they run in parallel.
mod ten_thousand_sequences {
    use tidegate_contract::replay::{Effort, replay};

    fn a_quarter(seed: u64) {
        tidegate_contract::harness::runtime().block_on(async {
            let effort = Effort { sequences: 2_500, image_every: 50 };
            replay(&super::OnDiskBackend::new(), seed, effort).await;
        });
    }

    #[test]
    fn first() {
        a_quarter(101);
    }

    #[test]
    fn second() {
        a_quarter(102);
    }

    #[test]
    fn third() {
        a_quarter(103);
    }

    #[test]
    fn fourth() {
        a_quarter(104);
    }
}
