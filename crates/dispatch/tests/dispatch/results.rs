//! Results are in our own storage before a generation is completed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tempfile::TempDir;
use tidegate_dispatch::storage::{FolderStorage, StorageError, StorageFuture, StoredFile};
use tidegate_dispatch::{
    AttemptOutcome, ChainLinkConfig, DispatchConfig, GenerationStatus, NewGeneration, ResultStorage,
};
use tidegate_sim::Provider as Simulated;

use crate::world::{World, fast};

/// A storage that is unavailable for the first puts.
struct FlakyStorage {
    folder: FolderStorage,
    failures: AtomicU32,
}

impl ResultStorage for FlakyStorage {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Bytes) -> StorageFuture<'a, ()> {
        let left = |left: u32| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Box::pin(async { Err(StorageError::Unavailable("not now".into())) });
        }
        self.folder.put(key, content_type, bytes)
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<StoredFile>> {
        self.folder.get(key)
    }
}

fn flaky_storage(failures: u32) -> (TempDir, Arc<dyn ResultStorage>) {
    let folder = tempfile::tempdir().unwrap();
    let storage = FlakyStorage {
        folder: FolderStorage::open(folder.path()).unwrap(),
        failures: AtomicU32::new(failures),
    };
    (folder, Arc::new(storage))
}

async fn flaky(simulated: Simulated, failures: u32, model: &'static str) -> World {
    let adjust = |config: &mut DispatchConfig| {
        let name = config.providers[0].name.clone();
        config.models[0].chain = vec![ChainLinkConfig::new(name, model)];
    };
    World::with_storage(vec![fast(simulated)], adjust, flaky_storage(failures)).await
}

/// DSP-20, DSP-24: what keeps a finished job from being completed is in `why` while it lasts, and
/// in the error and the ledger when the deadline ends it.
#[tokio::test]
async fn dsp_20_dsp_24_what_kept_a_result_from_being_stored_is_told() {
    let adjust = |config: &mut DispatchConfig| config.providers[0].deadline = Duration::from_millis(1_500);
    let world = World::with_storage(vec![fast(Simulated::Fal)], adjust, flaky_storage(u32::MAX)).await;
    let id = world.create("a cat").await;
    world.until(id, |one| one.error.is_some()).await;
    let why = world.generations.why(id).await.unwrap();
    assert!(why.because.contains("So far: its files are not stored yet: "), "{}", why.because);
    let failed = world.end(id).await;
    let error = failed.error.unwrap();
    assert_eq!(failed.status, GenerationStatus::Failed);
    assert!(error.contains("did not come in time; before that: its files are not stored yet: "), "{error}");
    assert_eq!(world.generations.why(id).await.unwrap().because, format!("It has ended: failed. {error}."));
    let ledger = world.generations.ledger_of(id).await.unwrap();
    assert_eq!((ledger[0].outcome, ledger[0].reason.as_ref()), (AttemptOutcome::Unknown, Some(&error)));
}

/// DSP-20: while its file cannot be stored a generation is not completed; the copy is tried again,
/// and nothing is submitted again.
#[tokio::test]
async fn dsp_20_completed_only_after_the_copy() {
    let world = flaky(Simulated::Fal, 1, "acme/flux/dev").await;
    let id = world.create("a cat").await;
    let failed = world.until(id, |one| one.error.is_some()).await;
    assert_eq!(failed.status, GenerationStatus::Processing);
    assert!(failed.error.unwrap().contains("not stored yet"));
    let done = world.end(id).await;
    assert_eq!((done.status, world.billed()), (GenerationStatus::Completed, 1));
    assert!(world.storage.get(&done.files[0].key).await.unwrap().is_some());
}

/// DSP-20: a picture that is in the response itself is kept until it is stored: no later response
/// has it.
#[tokio::test]
async fn dsp_20_a_picture_in_the_response_is_stored() {
    let world = flaky(Simulated::Google, 1, "gemini-3-image").await;
    let input = json!({ "contents": [{ "parts": [{ "text": "a cat" }] }] });
    let new = NewGeneration::new("ann", "flux", input);
    let id = world.generations.create(&new).await.unwrap().generation.id;
    let done = world.end(id).await;
    assert_eq!((done.status, world.billed()), (GenerationStatus::Completed, 1), "{done:?}");
    assert_eq!(done.files[0].content_type, "image/png");
}

/// DSP-20: a file that is larger than allowed fails the generation at once, with the reason: it
/// stays as large as it is. That goes for one that is downloaded and for one in a response.
#[tokio::test]
async fn dsp_20_a_file_that_is_too_large_is_not_stored() {
    let contents = json!({ "contents": [{ "parts": [{ "text": "a cat" }] }] });
    for (simulated, model, input) in [
        (Simulated::Fal, "acme/flux/dev", json!({ "prompt": "a cat" })),
        (Simulated::Google, "gemini-3-image", contents),
    ] {
        let world = World::start(vec![fast(simulated)], |config| {
            config.result_max_bytes = 100;
            config.providers[0].deadline = Duration::from_secs(3_600);
            config.models[0].chain[0].model = model.into();
        })
        .await;
        let created = world.generations.create(&NewGeneration::new("ann", "flux", input)).await.unwrap();
        let failed = world.end(created.generation.id).await;
        assert_eq!((failed.status, world.billed()), (GenerationStatus::Failed, 1), "{simulated:?}");
        assert!(failed.files.is_empty());
        let reason = failed.error.unwrap();
        assert!(reason.contains("it is larger than 100 bytes"), "{simulated:?}: {reason}");
        if simulated == Simulated::Fal {
            let ledger = world.generations.ledger_of(failed.id).await.unwrap();
            assert_eq!(ledger[0].reason.as_ref(), Some(&reason), "the ledger says so too");
        }
    }
}
