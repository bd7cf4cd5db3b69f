//! A crash at every point of a snapshot, and damaged snapshots: the old one, the new one, or an
//! error, never a guess.

use std::fs;

use tidegate_store::log::Lsn;
use tidegate_store::{Log, StoreErrorKind, Upkeep, codec};

use crate::image;
use crate::sample::{TestDir, accepts, facts, kind, replayed};

/// A directory with a snapshot up to 3 and appends 4 to 6, and an image from just before.
async fn with_snapshot() -> (TestDir, TestDir) {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    for seq in 1..7 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    let before = TestDir::of(image::of(place.path()));
    let parts = vec![codec::encode(&facts(101..103)), codec::encode(&facts(103..104))];
    store.snapshot(owner, Lsn(3), parts).await.unwrap();
    (place, before)
}

const SNAPSHOT: &str = "p0.snapshot-3";

/// The snapshot and what came after it.
fn new_history() -> (Vec<u64>, Lsn) {
    (vec![101, 102, 103, 4, 5, 6], Lsn(6))
}

/// The log as it was.
fn old_history() -> (Vec<u64>, Lsn) {
    ((1..7).collect(), Lsn(6))
}

#[tokio::test]
async fn the_log_is_trimmed_and_older_snapshots_go() {
    let (place, _) = with_snapshot().await;
    let (store, owner) = place.enter().await;
    assert_eq!(replayed(&store).await.unwrap(), new_history());
    assert_eq!(store.stats().await.unwrap().appends, 3);
    store.snapshot(owner, Lsn(6), vec![codec::encode(&facts(201..202))]).await.unwrap();
    assert!(!place.file(SNAPSHOT).exists() && place.file("p0.snapshot-6").exists());
    assert_eq!(replayed(&store).await.unwrap(), (vec![201], Lsn(6)));
    drop(store);
    let (store, owner) = place.enter().await;
    assert_eq!(replayed(&store).await.unwrap(), (vec![201], Lsn(6)));
    assert_eq!(store.append(owner, accepts(7..8, place.now())).await.unwrap(), Lsn(7));
}

#[tokio::test]
async fn a_snapshot_that_was_being_written_is_thrown_away() {
    let (place, before) = with_snapshot().await;
    fs::copy(place.file(SNAPSHOT), before.file("p0.snapshot-3.tmp")).unwrap();
    assert_eq!(replayed(&before.open().unwrap()).await.unwrap(), old_history());
    assert!(!before.file("p0.snapshot-3.tmp").exists());
}

#[tokio::test]
async fn a_snapshot_counts_though_the_log_is_not_trimmed_yet() {
    let (place, before) = with_snapshot().await;
    fs::copy(place.file(SNAPSHOT), before.file(SNAPSHOT)).unwrap();
    let (store, owner) = before.enter().await;
    assert_eq!(replayed(&store).await.unwrap(), new_history());
    store.snapshot(owner, Lsn(5), vec![codec::encode(&facts(201..202))]).await.unwrap();
    assert_eq!(replayed(&store).await.unwrap(), (vec![201, 6], Lsn(6)));
    assert!(!before.file(SNAPSHOT).exists());
}

/// Cut anywhere, or with any byte changed, a snapshot is detected as damaged; the log that it has
/// not replaced yet is used.
#[tokio::test]
async fn a_damaged_snapshot_falls_back_to_a_log_that_is_whole() {
    let (place, before) = with_snapshot().await;
    let whole = fs::read(place.file(SNAPSHOT)).unwrap();
    let store = before.open().unwrap();
    for at in 0..whole.len() {
        fs::write(before.file(SNAPSHOT), &whole[..at]).unwrap();
        assert_eq!(replayed(&store).await.unwrap(), old_history(), "cut at {at}");
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(before.file(SNAPSHOT), &changed).unwrap();
        assert_eq!(replayed(&store).await.unwrap(), old_history(), "changed at {at}");
    }
    fs::write(before.file(SNAPSHOT), [&whole[..], b"x"].concat()).unwrap();
    assert_eq!(replayed(&store).await.unwrap(), old_history(), "too long");
    fs::write(before.file(SNAPSHOT), &whole).unwrap();
    assert_eq!(replayed(&store).await.unwrap(), new_history(), "whole");
}

#[tokio::test]
async fn a_damaged_snapshot_with_a_trimmed_log_is_unreadable() {
    let (place, _) = with_snapshot().await;
    let whole = fs::read(place.file(SNAPSHOT)).unwrap();
    fs::write(place.file(SNAPSHOT), &whole[..whole.len() - 1]).unwrap();
    let store = place.open().unwrap();
    let error = replayed(&store).await.expect_err("it cannot be known what was in it");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(
        error.to_string().contains("its log starts after append 3 and no whole snapshot reaches"),
        "{error}"
    );
    assert!(error.to_string().contains("p0.snapshot-3 is damaged: it is cut short"), "{error}");
    drop(store);
    fs::remove_file(place.file(SNAPSHOT)).unwrap();
    assert_eq!(kind(replayed(&place.open().unwrap()).await), StoreErrorKind::Unreadable, "gone is no better");
    fs::write(place.file(SNAPSHOT), whole).unwrap();
    assert_eq!(
        replayed(&place.open().unwrap()).await.unwrap(),
        new_history(),
        "and put back it is all there"
    );
}

/// An older snapshot is used when a newer one is damaged and every append since is still there.
#[tokio::test]
async fn an_older_snapshot_serves_when_the_log_reaches_back_to_it() {
    let (place, _) = with_snapshot().await;
    let before = TestDir::of(image::of(place.path()));
    let (store, owner) = place.enter().await;
    store.snapshot(owner, Lsn(5), vec![codec::encode(&facts(201..202))]).await.unwrap();
    let newer = fs::read(place.file("p0.snapshot-5")).unwrap();
    fs::write(before.file("p0.snapshot-5"), &newer[..newer.len() / 2]).unwrap();
    assert_eq!(replayed(&before.open().unwrap()).await.unwrap(), new_history());
}

#[tokio::test]
async fn an_append_that_is_missing_is_noticed() {
    let (place, _) = with_snapshot().await;
    let sql = rusqlite::Connection::open(place.file("p0.sqlite")).unwrap();
    sql.execute("DELETE FROM log WHERE lsn = 5", []).unwrap();
    drop(sql);
    let error = replayed(&place.open().unwrap()).await.expect_err("there is a hole");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(error.to_string().ends_with("append 5 is missing"), "{error}");
}

#[tokio::test]
async fn a_snapshot_that_could_not_be_read_back_replaces_nothing() {
    let (place, _) = with_snapshot().await;
    let (store, owner) = place.enter().await;
    let parts = vec![codec::encode(&facts(1..2)), codec::encode(&facts(1..2)).slice(..3)];
    assert_eq!(kind(store.snapshot(owner, Lsn(6), parts).await), StoreErrorKind::Invalid);
    assert_eq!(
        kind(store.snapshot(owner, Lsn(7), Vec::new()).await),
        StoreErrorKind::Invalid,
        "ahead of the log"
    );
    assert_eq!(
        kind(store.snapshot(owner, Lsn(2), Vec::new()).await),
        StoreErrorKind::Invalid,
        "older than the newest"
    );
    assert_eq!(replayed(&store).await.unwrap(), new_history());
}

/// Trimming a long log runs between appends.
#[tokio::test]
async fn a_long_log_is_trimmed_in_small_steps_beside_appends() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    for seq in 1..401 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    let parts = vec![codec::encode(&facts(900..901))];
    let append = async {
        for seq in 401..421 {
            store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
        }
    };
    let (replaced, ()) = tokio::join!(store.snapshot(owner, Lsn(390), parts), append);
    replaced.unwrap();
    let wanted = std::iter::once(900).chain(391..421).collect();
    assert_eq!(replayed(&store).await.unwrap(), (wanted, Lsn(420)));
    // Closing leaves nothing to be applied.
    drop(store);
    let sql = rusqlite::Connection::open(place.file("p0.sqlite")).unwrap();
    let left: i64 = sql.query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 30);
}
