//! Opening a directory: one process at a time, never a newer format, and immediate takeover from a
//! dead process.

use std::sync::Arc;

use tidegate_contract::ManualClock;
use tidegate_store::log::{Batch, Lsn, StoredQuery};
use tidegate_store::{Log, StoreErrorKind, Upkeep, WallClock};
use tidegate_store_embedded::{EmbeddedStore, Options};

use crate::image;
use crate::sample::{NO_CHECKSUM, PARTITION, TTL, TestDir, accepts, ends, facts, kind, replayed};

#[tokio::test]
async fn a_second_handle_is_refused_and_told_which_directory() {
    let place = TestDir::new();
    let first = place.open().unwrap();
    let error = place.open().err().expect("it is taken");
    assert_eq!(error.kind(), StoreErrorKind::Held);
    assert!(error.to_string().contains(&place.path().display().to_string()), "{error}");
    drop(first);
    assert!(place.open().is_ok(), "it is free as soon as the first one is gone");
}

#[tokio::test]
async fn a_newer_format_is_refused_and_left_as_it_is() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    drop(store);
    let set_format = |format: i64| {
        let sql = rusqlite::Connection::open(place.file("p0.sqlite")).unwrap();
        sql.execute("UPDATE meta SET value = ?1, sum = ?2 WHERE name = 'format'", [format, NO_CHECKSUM])
            .unwrap();
    };
    set_format(11);
    let error = place.open().err().expect("format 11 is not known");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(error.to_string().contains("has format 11; this program reads format 10"), "{error}");
    set_format(10);
    assert_eq!(replayed(&place.open().unwrap()).await.unwrap(), (vec![1, 2, 3], Lsn(1)));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_unreadable() {
    let place = TestDir::new();
    std::fs::write(place.file("p0.sqlite"), vec![7; 20_000]).unwrap();
    assert_eq!(kind(place.open()), StoreErrorKind::Unreadable);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_directory_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("a/b");
    let url = format!("file:{}", dir.display());
    let store = tidegate_store_embedded::open(&url, ManualClock::today()).unwrap();
    assert_eq!(store.describe(), url);
    assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
}

/// The modes of a directory and of everything in it.
#[cfg(unix)]
fn modes(dir: &std::path::Path) -> std::collections::BTreeMap<String, u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries.map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())));
    files.chain([(".".to_owned(), mode(dir))]).collect()
}

/// Only the owner may access the store's files, whatever the umask, both for new files and for
/// existing ones.
#[cfg(unix)]
#[tokio::test]
async fn files_are_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let last = store.append(owner, accepts(1..4, place.now())).await.unwrap();
    store.snapshot(owner, last, vec![tidegate_store::codec::encode(&facts(1..4))]).await.unwrap();
    let found = modes(place.path());
    for kind in ["LOCK", ".sqlite", ".sqlite-wal", ".front-", ".snapshot-"] {
        assert!(found.keys().any(|name| name.contains(kind)), "{kind}: {found:?}");
    }
    let closed = |found: &std::collections::BTreeMap<String, u32>| {
        found.iter().all(|(name, mode)| *mode == if name == "." { 0o700 } else { 0o600 })
    };
    assert!(closed(&found), "{found:?}");
    drop(store);

    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in modes(place.path()).keys() {
        open(&place.file(name), if name == "." { 0o755 } else { 0o644 });
    }
    let store = place.open().unwrap();
    let found = modes(place.path());
    assert!(closed(&found), "{found:?}");
    drop(store);

    std::fs::write(place.file("notes.txt"), "mine").unwrap();
    open(&place.file("notes.txt"), 0o644);
    open(place.path(), 0o755);
    let _store = place.open().unwrap();
    let found = modes(place.path());
    assert_eq!(
        (found["notes.txt"], found["."]),
        (0o644, 0o755),
        "what is not only the store's is left alone"
    );
}

#[tokio::test]
async fn urls_name_a_directory_or_memory() {
    let clock = ManualClock::today();
    let memory = tidegate_store_embedded::open("memory:", Arc::clone(&clock) as _).unwrap();
    assert_eq!(memory.describe(), "memory:");
    for url in ["file:", "redis://x", "", "memory", "memory:x"] {
        assert_eq!(
            kind(tidegate_store_embedded::open(url, Arc::clone(&clock) as _)),
            StoreErrorKind::Invalid,
            "{url}"
        );
    }
}

/// OPS-8: after `kill -9` the next process takes ownership at once: the lock proves that the old
/// owner is dead. Its epoch is over, and everything acknowledged to it is there.
#[tokio::test]
async fn ops_8_a_dead_owner_is_taken_over_at_once() {
    let place = TestDir::new();
    let (store, dead) = place.enter().await;
    store.append(dead, accepts(1..65, place.now())).await.unwrap();
    store.append(dead, ends(1..31, place.now())).await.unwrap();
    assert_eq!(
        kind(store.acquire_partition(PARTITION, "other", TTL).await),
        StoreErrorKind::Held,
        "while it lives"
    );
    let after = TestDir::of(image::of(place.path()));
    let next = after.open().unwrap();
    let owner = next.acquire_partition(PARTITION, "other", TTL).await.expect("the same moment, another node");
    assert!(owner.epoch > dead.epoch);
    assert_eq!(kind(next.append(dead, Batch::default()).await), StoreErrorKind::Fenced);
    assert_eq!(replayed(&next).await.unwrap(), ((1..65).collect(), Lsn(2)));
    let stats = next.stats().await.unwrap();
    assert_eq!((stats.operations, stats.appends), (64, 2), "counters are durable too");
    let page = next.list(PARTITION, StoredQuery { limit: 100, ..StoredQuery::default() }).await.unwrap();
    assert_eq!(page.items.iter().filter(|stored| stored.result.is_some()).count(), 30);
}

/// OPS-8: acknowledged appends that are damaged in the write-ahead log and not yet in SQLite are
/// detected: nothing is skipped silently. A torn end was never acknowledged.
#[tokio::test]
async fn ops_8_damage_in_the_front_is_told_from_a_torn_end() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    for seq in 1..11 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    // As after a power loss: what SQLite had not made durable by itself is gone.
    let image = crate::image::of(place.path());
    drop(store);
    for name in ["p0.sqlite", "p0.sqlite-wal", "p0.mark"] {
        // It may not exist yet.
        let _ = std::fs::remove_file(image.path().join(name));
    }
    let front = std::fs::read_dir(image.path()).unwrap().map(|entry| entry.unwrap().path());
    let front = front.into_iter().find(|path| path.to_string_lossy().contains(".front-")).unwrap();
    let whole = std::fs::read(&front).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let open = || EmbeddedStore::open(image.path(), Options::new(Arc::new(WallClock)));
    let mut damaged = whole.clone();
    damaged[used / 2] ^= 1;
    std::fs::write(&front, damaged).unwrap();
    let error = open().err().expect("an append in the middle does not check");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(error.to_string().contains("is damaged: append"), "{error}");
    let mut torn = whole;
    torn[used - 1] ^= 1;
    std::fs::write(&front, torn).unwrap();
    assert_eq!(replayed(&open().unwrap()).await.unwrap(), ((1..10).collect(), Lsn(9)));
}
