//! The suites that every store must pass, on memory and on a directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tidegate_contract::{Backend, HandClock};
use tidegate_store::{Answer, Store};
use tidegate_store_embedded::{Embedded, Memory, Options};

/// Memory that stays when its store is dropped, as if it were a disk.
struct InMemory {
    clock: Arc<HandClock>,
    kept: Arc<Memory>,
}

impl InMemory {
    fn new() -> Self {
        let clock = HandClock::today();
        Self { kept: Arc::new(Memory::new(Arc::clone(&clock) as _)), clock }
    }
}

impl Backend for InMemory {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(async { Ok(Arc::clone(&self.kept) as _) })
    }

    fn crash(&self) -> Answer<'_, Arc<dyn Store>> {
        self.open()
    }

    fn clock(&self) -> Arc<HandClock> {
        Arc::clone(&self.clock)
    }
}

/// A directory, and the images that were taken of it.
struct OnDisk {
    clock: Arc<HandClock>,
    dir: TempDir,
    images: Mutex<Vec<TempDir>>,
}

impl OnDisk {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { clock: HandClock::today(), dir, images: Mutex::default() }
    }

    fn store(&self, dir: &Path) -> tidegate_store::Result<Arc<dyn Store>> {
        Ok(Arc::new(Embedded::open(dir, Options::new(Arc::clone(&self.clock) as _))?))
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

impl Backend for OnDisk {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(async { self.store(&self.data()) })
    }

    fn crash(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(async {
            let image = crate::image::of(&self.data());
            let store = self.store(image.path());
            self.images.lock().expect("nobody panicked").push(image);
            store
        })
    }

    fn clock(&self) -> Arc<HandClock> {
        Arc::clone(&self.clock)
    }
}

mod memory {
    tidegate_contract::store_suites!(super::InMemory::new());
}

mod embedded {
    tidegate_contract::store_suites!(super::OnDisk::new());
}

/// OPS-8: ten thousand sequences through a directory, each cut somewhere, in four parts so that they run side by side.
mod ten_thousand_sequences {
    use tidegate_contract::replay::{Effort, replay};

    fn a_quarter(seed: u64) {
        tidegate_contract::harness::runtime().block_on(async {
            let effort = Effort { sequences: 2_500, image_every: 50 };
            replay(&super::OnDisk::new(), seed, effort).await;
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
