//! Random and targeted damage: whatever byte of whatever file is flipped, zeroed or cut off after
//! the process was killed, acknowledged data is there as it was written, or an error says what is
//! wrong. Nothing is missing silently, and nothing is read that was not written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use tempfile::TempDir;
use tidegate_contract::TestRng;
use tidegate_core::Seq;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tidegate_store::log::{Lsn, StoredEntry, StoredQuery};
use tidegate_store::{Log, Result, SharedState, StoreErrorKind};
use tidegate_store_embedded::EmbeddedStore;

use crate::image;
use crate::sample::{
    NO_CHECKSUM, PARTITION, TestDir, accepts, ends, kind, operation, replayed, strip_checksums,
};

/// The damaged directories of each scenario.
const CASES: u64 = 120;
const OPERATIONS: u64 = 60;
const RECORDS: u64 = 12;

/// The acknowledged data.
struct AcknowledgedState {
    operations: Vec<StoredEntry>,
    replayed: (Vec<u64>, Lsn),
}

fn key(nth: u64) -> String {
    format!("caller:{nth}")
}

fn answer(nth: u64) -> Bytes {
    Bytes::from(format!("answer {nth}").repeat(20))
}

/// Fills a store and returns what it holds. The last append is only in the write-ahead log.
async fn filled(place: &TestDir) -> (EmbeddedStore, AcknowledgedState) {
    let (store, owner) = place.enter().await;
    for seq in (1..OPERATIONS).step_by(3) {
        store.append(owner, accepts(seq..seq + 3, place.now())).await.unwrap();
    }
    for nth in 0..RECORDS {
        let claim = RecordClaim {
            fingerprint: [nth as u8; 32],
            token: HolderToken([nth as u8; 16]),
            lease: Duration::from_secs(30),
            ttl: Duration::from_secs(3_600),
            on_lapse: OnLapse::TakeOver,
        };
        store.claim_record(&key(nth), claim).await.unwrap();
        assert!(store.complete_record(&key(nth), HolderToken([nth as u8; 16]), answer(nth)).await.unwrap());
    }
    store.append(owner, ends(1..OPERATIONS / 2, place.now())).await.unwrap();
    let seqs = (1..=OPERATIONS).map(Seq).collect();
    let found = store.read(PARTITION, seqs).await.unwrap();
    let operations = found.into_iter().map(|stored| stored.expect("it was acknowledged")).collect();
    let replayed = replayed(&store).await.unwrap();
    (store, AcknowledgedState { operations, replayed })
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| fs::metadata(path).unwrap().len() > 0 && !path.ends_with("p0.sqlite-shm"));
    files.sort_unstable();
    files
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for path in files(from) {
        fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    to
}

/// Damages one file and describes how.
fn damage(dir: &Path, dice: &mut TestRng) -> String {
    let path = dice.pick(&files(dir)).clone();
    let mut bytes = fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let at = dice.index(used);
    let how = *dice.pick(&["flip", "flips", "zero", "cut", "last"]);
    match how {
        "flip" => bytes[at] ^= 1 << dice.below(8),
        "flips" => (0..8).for_each(|_| bytes[dice.index(used)] ^= dice.within(1..256) as u8),
        "zero" => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
        "cut" => bytes.truncate(at),
        _ => bytes[used - 1 - dice.index(used.min(64))] ^= 0xff,
    }
    fs::write(&path, bytes).unwrap();
    format!("{how} at {at} of {used} in {}", path.display())
}

/// What a damaged store returned: everything, or less with an error.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Whole,
    Refused,
}

/// Checks that a result is what was acknowledged, or an error that it cannot be read.
#[track_caller]
fn same_or_refused<T: PartialEq + std::fmt::Debug>(found: Result<T>, known: &T, how: &str) -> Finding {
    match found {
        Ok(found) => {
            assert_eq!(found, *known, "{how}");
            Finding::Whole
        }
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{how}: {error}");
            Finding::Refused
        }
    }
}

async fn check(place: &TestDir, known: &AcknowledgedState, how: &str) -> Finding {
    let store = match place.open() {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{how}: {error}");
            assert!(error.to_string().contains(&place.path().display().to_string()), "{how}: {error}");
            return Finding::Refused;
        }
    };
    let mut findings = vec![same_or_refused(replayed(&store).await, &known.replayed, how)];
    for stored in &known.operations {
        let found = store.read(PARTITION, vec![stored.operation.seq]).await;
        findings.push(same_or_refused(
            found.map(|mut found| found.pop().flatten()),
            &Some(stored.clone()),
            how,
        ));
    }
    let listed = store.list(PARTITION, StoredQuery { limit: 1_000, ..StoredQuery::default() }).await;
    let listed = listed.map(|page| page.items.iter().rev().map(|stored| stored.operation.seq.0).collect());
    findings.push(same_or_refused(listed, &(1..=OPERATIONS).collect::<Vec<_>>(), how));
    for nth in 0..RECORDS {
        let found = store.get_record(&key(nth)).await;
        let found = found.map(|record| record.map(|record| (record.fingerprint, record.stage)));
        let stage = tidegate_core::shared::record::RecordStage::Completed(answer(nth));
        findings.push(same_or_refused(found, &Some(([nth as u8; 32], stage)), how));
    }
    findings.into_iter().find(|finding| *finding == Finding::Refused).unwrap_or(Finding::Whole)
}

async fn damaged_again_and_again(from: &Path, clock: &TestDir, known: &AcknowledgedState, seed: u64) {
    let mut dice = TestRng::seeded_or(seed);
    let mut refused = 0;
    for nth in 0..CASES {
        let mut place = TestDir::of(copy(from));
        place.clock = Arc::clone(&clock.clock);
        let how = format!("case {nth}: {}", damage(place.path(), &mut dice));
        refused += u64::from(check(&place, known, &how).await == Finding::Refused);
    }
    println!("{refused} of {CASES} damaged folders were refused, the others were whole");
    assert!(refused > 0, "nothing was damaged");
}

/// OPS-8: killed, then damaged: nothing is lost silently, and nothing is read that was not written.
#[tokio::test]
async fn ops_8_damage_after_a_kill_is_never_silent() {
    let place = TestDir::new();
    let (store, known) = filled(&place).await;
    let image = image::of(place.path());
    drop(store);
    damaged_again_and_again(image.path(), &place, &known, 310).await;
}

/// OPS-8: the same after an orderly stop, when SQLite's own file has everything.
#[tokio::test]
async fn ops_8_damage_after_a_stop_is_never_silent() {
    let place = TestDir::new();
    let (store, known) = filled(&place).await;
    drop(store);
    damaged_again_and_again(place.path(), &place, &known, 311).await;
}

fn front_of(dir: &Path) -> PathBuf {
    files(dir).into_iter().find(|path| path.to_string_lossy().contains(".front-")).unwrap()
}

/// OPS-8: the very last acknowledged append is damaged or cut off, and nothing but the mark knows
/// of it: the error says where, and what is lost. Without the mark it would be taken for a torn
/// write.
#[tokio::test]
async fn ops_8_a_front_that_ends_too_early_is_named() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    for seq in 1..11 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    let image = image::of(place.path());
    drop(store);
    for name in ["p0.sqlite", "p0.sqlite-wal"] {
        // It may not exist yet.
        let _ = fs::remove_file(image.path().join(name));
    }
    let image = TestDir::of(image);
    let front = front_of(image.path());
    let whole = fs::read(&front).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut changed = whole.clone();
    changed[used - 1] ^= 1;
    for damaged in [changed, whole[..used - 1].to_vec(), vec![0; whole.len()]] {
        fs::write(&front, damaged).unwrap();
        let error = image.open().err().expect("an acknowledged append is gone");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        let message = error.to_string();
        let parts =
            [&*front.display().to_string(), "at byte ", "to 10 were acknowledged", "up to operation 10"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    fs::remove_file(image.file("p0.mark")).unwrap();
    assert_eq!(
        replayed(&image.open().unwrap()).await.unwrap().1,
        Lsn(0),
        "who removes the mark goes on without"
    );
}

/// OPS-8: damage to an append that SQLite has is no loss, and what follows it in the write-ahead
/// log is found.
#[tokio::test]
async fn ops_8_damage_to_what_sqlite_has_is_no_loss() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    for seq in 1..6 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    // Lists wait until everything is applied.
    store.list(PARTITION, StoredQuery { limit: 1, ..StoredQuery::default() }).await.unwrap();
    drop(store);
    let front = front_of(place.path());
    let mut bytes = fs::read(&front).unwrap();
    bytes[200] ^= 1;
    fs::write(&front, bytes).unwrap();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(6..7, place.now())).await.unwrap();
    let image = TestDir::of(image::of(place.path()));
    drop(store);
    assert_eq!(replayed(&image.open().unwrap()).await.unwrap(), ((1..7).collect(), Lsn(6)));
}

/// OPS-8: commits that only SQLite has are noted too: a truncated SQLite log is not taken for the
/// end.
#[tokio::test]
async fn ops_8_records_that_were_cut_off_are_named() {
    let place = TestDir::new();
    let (store, known) = filled(&place).await;
    let image = TestDir::of(image::of(place.path()));
    drop((store, known));
    fs::write(image.file("p0.sqlite-wal"), b"").unwrap();
    let error = image.open().err().expect("records are gone");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(error.to_string().contains("p0.sqlite is damaged"), "{error}");
}

/// OPS-8: a payload that was changed on the disk is never returned, and neither is a changed
/// result; the rest is.
#[tokio::test]
async fn ops_8_a_patched_row_is_refused() {
    let place = TestDir::new();
    let (store, _) = filled(&place).await;
    drop(store);
    let sql = Connection::open(place.file("p0.sqlite")).unwrap();
    let patches = [
        "UPDATE operations SET payload = CAST(replace(payload, 'x', 'y') AS BLOB) WHERE seq = 40",
        "UPDATE operations SET grp = 'somebody else' WHERE seq = 41",
        "UPDATE results SET state = 'succeeded' WHERE seq = 3",
        "UPDATE results SET body = x'00' WHERE seq = 4",
        "UPDATE records SET answer = x'00' WHERE key = 'caller:1'",
    ];
    for patch in patches {
        assert_eq!(sql.execute(patch, []).unwrap(), 1, "{patch}");
    }
    drop(sql);
    let store = place.open().unwrap();
    for seq in [3, 4, 40, 41] {
        let refused = store.read(PARTITION, vec![Seq(seq)]).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Unreadable);
        assert!(
            refused.to_string().contains(&format!("operation {seq} is not what was written")),
            "{refused}"
        );
    }
    assert_eq!(kind(store.get_record(&key(1)).await), StoreErrorKind::Unreadable);
    assert!(store.get_record(&key(2)).await.unwrap().is_some());
    let fine = store.read(PARTITION, vec![Seq(42)]).await.unwrap().pop().flatten().unwrap();
    assert_eq!(fine.operation, operation(42, fine.operation.at));
}

/// OPS-8: a row is not believed because its checksum was wiped together with it, as on a page that
/// became all zeros or all ones.
#[tokio::test]
async fn ops_8_a_wiped_checksum_vouches_for_nothing() {
    for wiped in [0, -1] {
        let place = TestDir::new();
        let (store, _) = filled(&place).await;
        drop(store);
        let sql = Connection::open(place.file("p0.sqlite")).unwrap();
        let patches = [
            format!("UPDATE operations SET payload = x'00', sum = {wiped} WHERE seq = 40"),
            format!("UPDATE results SET body = x'', sum = {wiped} WHERE seq = 4"),
            format!("UPDATE records SET answer = x'00', sum = {wiped} WHERE key = 'caller:1'"),
        ];
        for patch in patches {
            assert_eq!(sql.execute(&patch, []).unwrap(), 1, "{patch}");
        }
        drop(sql);
        let store = place.open().unwrap();
        for seq in [4, 40] {
            assert_eq!(kind(store.read(PARTITION, vec![Seq(seq)]).await), StoreErrorKind::Unreadable);
        }
        assert_eq!(kind(store.get_record(&key(1)).await), StoreErrorKind::Unreadable);
    }
}

/// OPS-8: a directory of format 6, in which rows of an even older version have a 0 for a checksum,
/// is read, and from then on a 0 is damage.
#[tokio::test]
async fn ops_8_rows_without_a_checksum_are_marked_once() {
    let place = TestDir::new();
    let (store, known) = filled(&place).await;
    drop(store);
    let sql = Connection::open(place.file("p0.sqlite")).unwrap();
    let older = "DROP TABLE attempts; DROP TABLE deployment_events; DROP TABLE audit_log;
        UPDATE operations SET sum = 0 WHERE seq < 40";
    sql.execute_batch(older).unwrap();
    sql.execute("UPDATE meta SET value = 6, sum = ?1 WHERE name = 'format'", [NO_CHECKSUM]).unwrap();
    drop(sql);
    assert_eq!(check(&place, &known, "of format 6").await, Finding::Whole);
    let sql = Connection::open(place.file("p0.sqlite")).unwrap();
    sql.execute("UPDATE operations SET sum = 0 WHERE seq = 1", []).unwrap();
    drop(sql);
    let store = place.open().unwrap();
    assert_eq!(kind(store.read(PARTITION, vec![Seq(1)]).await), StoreErrorKind::Unreadable);
    assert!(store.read(PARTITION, vec![Seq(2)]).await.is_ok());
}

/// OPS-8: an append whose facts were changed so that they can still be decoded is not replayed.
#[tokio::test]
async fn ops_8_a_patched_append_is_refused() {
    let place = TestDir::new();
    let (store, _) = filled(&place).await;
    drop(store);
    let sql = Connection::open(place.file("p0.sqlite")).unwrap();
    sql.execute("UPDATE log SET facts = (SELECT facts FROM log WHERE lsn = 2) WHERE lsn = 3", []).unwrap();
    drop(sql);
    let error = replayed(&place.open().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("append 3 is not what was written"), "{error}");
}

/// OPS-8: data of a version without checksums is read as it is, and what is written from then on is
/// checked.
#[tokio::test]
async fn ops_8_a_folder_of_before_there_were_checksums_is_read() {
    let place = TestDir::new();
    let (store, known) = filled(&place).await;
    drop(store);
    strip_checksums(&place);
    assert_eq!(check(&place, &known, "of format 5").await, Finding::Whole);
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(61..62, place.now())).await.unwrap();
    drop(store);
    let sql = Connection::open(place.file("p0.sqlite")).unwrap();
    sql.execute("UPDATE operations SET payload = x'00' WHERE seq IN (1, 61)", []).unwrap();
    drop(sql);
    let store = place.open().unwrap();
    assert!(store.read(PARTITION, vec![Seq(1)]).await.is_ok(), "nobody can know");
    assert_eq!(kind(store.read(PARTITION, vec![Seq(61)]).await), StoreErrorKind::Unreadable);
}
