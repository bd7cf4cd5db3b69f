//! A store in a fresh directory with an owner, and batches to append to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tidegate_contract::ManualClock;
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Fact, Fault, FaultClass, Seq, Time};
use tidegate_store::log::{Batch, Lsn, Ownership, StoredOperation, StoredResult};
use tidegate_store::{Clock, Error, Log, Result, StoreErrorKind};
use tidegate_store_embedded::{EmbeddedStore, Faults, Options};

/// The partition that the tests use.
pub(crate) const PARTITION: Partition = 0;
/// How long an owner holds it.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A directory, its options, and its faults.
pub(crate) struct TestDir {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) faults: Arc<Faults>,
    dir: TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self::of(tempfile::tempdir().expect("a directory"))
    }

    /// A directory with the contents of an image.
    pub(crate) fn of(dir: TempDir) -> Self {
        Self { clock: ManualClock::today(), faults: Arc::default(), dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn open(&self) -> Result<EmbeddedStore> {
        let clock = Arc::clone(&self.clock) as _;
        EmbeddedStore::open(self.path(), Options::new(clock).with_faults(Arc::clone(&self.faults)))
    }

    /// Opens the store and acquires the partition.
    pub(crate) async fn enter(&self) -> (EmbeddedStore, Ownership) {
        let store = self.open().expect("the store opens");
        let owner = store.acquire_partition(PARTITION, "test", TTL).await.expect("the partition is free");
        (store, owner)
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }
}

/// What a row from before there were checksums has in place of one.
pub(crate) const NO_CHECKSUM: i64 = 0x6e6f_2073_756d_2121;

/// Converts a directory to format 5, which had no audit log, no events, no attempts, no checksums
/// and no mark.
pub(crate) fn strip_checksums(place: &TestDir) {
    std::fs::remove_file(place.file("p0.mark")).unwrap();
    let sql = rusqlite::Connection::open(place.file("p0.sqlite")).unwrap();
    sql.execute_batch("DROP TABLE attempts; DROP TABLE deployment_events; DROP TABLE audit_log").unwrap();
    let tables = "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c ON c.name = 'sum'";
    let mut tables = sql.prepare(tables).unwrap();
    let tables: rusqlite::Result<Vec<String>> = tables.query_map([], |row| row.get(0)).unwrap().collect();
    let tables = tables.unwrap();
    assert_eq!(tables.len(), 11, "{tables:?}");
    for table in tables {
        sql.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN sum")).unwrap();
    }
    let older = "DELETE FROM meta WHERE name IN ('layout', 'commits');
        UPDATE meta SET value = 5 WHERE name = 'format'";
    sql.execute_batch(older).unwrap();
}

/// One fact for each seq, so that a replay shows which batches are there.
pub(crate) fn facts(seqs: std::ops::Range<u64>) -> Vec<Fact> {
    seqs.map(|seq| Fact::CancelRequested { seq: Seq(seq) }).collect()
}

/// A batch that accepts these operations.
pub(crate) fn accepts(seqs: std::ops::Range<u64>, at: Time) -> Batch {
    let operations = seqs.clone().map(|seq| operation(seq, at).into()).collect();
    Batch { facts: facts(seqs), operations, ..Batch::default() }
}

/// A batch that ends these operations.
pub(crate) fn ends(seqs: impl Iterator<Item = u64>, at: Time) -> Batch {
    Batch { results: seqs.map(|seq| result(seq, at)).collect(), ..Batch::default() }
}

pub(crate) fn operation(seq: u64, at: Time) -> StoredOperation {
    StoredOperation {
        seq: Seq(seq),
        at,
        group: format!("group:{}", seq % 7).into(),
        kind: "http".into(),
        key: None,
        envelope: Bytes::from_static(b"envelope"),
        payload: Bytes::from(vec![b'x'; 512]),
    }
}

/// A failure every third time, otherwise a success.
fn result(seq: u64, at: Time) -> StoredResult {
    let failed = seq.is_multiple_of(3);
    StoredResult {
        seq: Seq(seq),
        at,
        state: if failed { EndState::Failed } else { EndState::Succeeded },
        attempt: 1,
        fault: failed.then(|| Fault::new(FaultClass::Transient, "reset")),
        body: Bytes::from_static(b"body"),
    }
}

/// The seqs of the replayed facts, and the last append.
pub(crate) async fn replayed(store: &dyn Log) -> Result<(Vec<u64>, Lsn)> {
    let mut seqs = Vec::new();
    let mut replay = |facts: Vec<Fact>| {
        seqs.extend(facts.iter().map(|fact| match fact {
            Fact::CancelRequested { seq } => seq.0,
            other => panic!("not a fact of this test: {other:?}"),
        }));
    };
    let last = store.load(PARTITION, &mut replay).await?;
    Ok((seqs, last))
}

/// The kind of an error.
#[track_caller]
pub(crate) fn kind<T>(answer: Result<T>) -> StoreErrorKind {
    answer.err().as_ref().map(Error::kind).expect("it should have failed")
}
