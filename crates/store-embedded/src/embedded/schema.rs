//! The schema of a partition's file and the setup of connections to it. Operations are written once
//! and never updated; no index but a partial one slows down a write.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tidegate_core::id::Partition;
use tidegate_store::{Error, Result, StoreErrorKind};

use super::errors::{damaged, nothing_changed};
use super::lock::unusable;
use super::permissions;
use super::row_checksum::{self, RowChecksum};

/// The format that this program writes, and the newest it reads.
pub(super) const FORMAT: i64 = 10;
/// Files up to this size are checked completely when they are opened; larger ones only as they are
/// read.
const LOOKED_THROUGH_LEN_MAX: u64 = 256 * 1024 * 1024;

const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value, sum INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE operations (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, grp TEXT NOT NULL, kind TEXT NOT NULL, key TEXT,
    envelope BLOB NOT NULL, payload BLOB NOT NULL, sum INTEGER NOT NULL
);
CREATE TABLE results (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
    fault_class TEXT, fault TEXT, body BLOB NOT NULL, sum INTEGER NOT NULL
);
CREATE INDEX results_unsuccessful ON results (state) WHERE state <> 'succeeded';
CREATE TABLE log (lsn INTEGER PRIMARY KEY, facts BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE leases (
    name TEXT PRIMARY KEY, fence INTEGER NOT NULL, until INTEGER NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE buckets (
    name TEXT PRIMARY KEY, tokens INTEGER NOT NULL, carry INTEGER NOT NULL, at INTEGER NOT NULL,
    capacity INTEGER NOT NULL, refill_per_s INTEGER NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE windows (
    key TEXT PRIMARY KEY, level INTEGER NOT NULL, until INTEGER NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX windows_closing ON windows (until) WHERE until >= 0;
";

const RECORDS: &str = "
CREATE TABLE records (
    key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL, token BLOB NOT NULL, created INTEGER NOT NULL,
    expires INTEGER NOT NULL, holds INTEGER NOT NULL, until INTEGER, answer BLOB, sum INTEGER NOT NULL
);
CREATE INDEX records_ending ON records (expires) WHERE expires >= 0;
";

/// Tables for people: the state of limits and the costs of calls. Amounts are in tokens, times in
/// microseconds since 1970.
const COST_TABLES: &str = "
CREATE TABLE rate_limit_buckets (
    name TEXT PRIMARY KEY, upstream TEXT NOT NULL, kind TEXT NOT NULL, capacity REAL, refill_rate REAL DEFAULT 2.0,
    level REAL, source TEXT NOT NULL, closed_until INTEGER, updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE api_cost_tracking (
    at INTEGER NOT NULL, operation TEXT NOT NULL, claim INTEGER NOT NULL, nth INTEGER NOT NULL, upstream TEXT NOT NULL,
    limit_name TEXT NOT NULL, shape TEXT NOT NULL, requested REAL NOT NULL, actual REAL, restore_rate REAL
);
CREATE INDEX api_cost_tracking_at ON api_cost_tracking (at);
";

/// What formats 4 to 7 had otherwise in the tables of costs.
const COST_RATES: &str = "
ALTER TABLE rate_limit_buckets RENAME COLUMN refill_per_s TO refill_rate;
ALTER TABLE api_cost_tracking ADD COLUMN restore_rate REAL;
";

/// The journal of deployments.
const JOURNAL: &str = "
CREATE TABLE deployments (
    id TEXT PRIMARY KEY, scope TEXT NOT NULL, fence INTEGER NOT NULL, round INTEGER NOT NULL, stage TEXT NOT NULL,
    request BLOB NOT NULL, note TEXT, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    sum INTEGER NOT NULL
);
CREATE INDEX deployments_scope ON deployments (scope, id);
CREATE TABLE deployment_steps (
    deployment TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, nth INTEGER NOT NULL, action TEXT NOT NULL,
    fingerprint TEXT NOT NULL, state TEXT NOT NULL, operation TEXT, foreign_id TEXT, note TEXT, at INTEGER NOT NULL,
    sum INTEGER NOT NULL, PRIMARY KEY (deployment, kind, key)
) WITHOUT ROWID;
CREATE TABLE deployment_objects (
    scope TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, place TEXT,
    fingerprint TEXT NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (scope, kind, key)
) WITHOUT ROWID;
";

/// What happened to the steps of deployments, in order.
const EVENTS: &str = "
CREATE TABLE deployment_events (
    deployment TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, nth INTEGER NOT NULL,
    action TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL, operation TEXT, foreign_id TEXT, note TEXT,
    at INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (deployment, seq)
) WITHOUT ROWID;
";

/// Attempts whose job ends elsewhere.
const ATTEMPTS: &str = "
CREATE TABLE attempts (
    seq INTEGER NOT NULL, fence INTEGER NOT NULL, body BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (seq, fence)
) WITHOUT ROWID;
";

/// What operators commanded.
const AUDIT_LOG: &str = "
CREATE TABLE audit_log (
    at INTEGER NOT NULL, tie INTEGER NOT NULL, node TEXT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL,
    kind TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT, reason TEXT, status INTEGER NOT NULL,
    sum INTEGER NOT NULL, PRIMARY KEY (at, tie)
);
";

/// The tables whose rows have checksums: all that any decision or any proof depends on.
const CHECKED: [&str; 14] = [
    "meta",
    "operations",
    "results",
    "attempts",
    "log",
    "records",
    "leases",
    "buckets",
    "windows",
    "deployments",
    "deployment_steps",
    "deployment_objects",
    "deployment_events",
    "audit_log",
];

/// A commit is durable before it returns. Its SQLite log is checkpointed in the background, and by
/// the writer itself only when that has fallen far behind. Files are read, never memory-mapped: a
/// failing disk must cause an error, not end the process.
const WRITER: &str = "
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -8192;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
";

const READER: &str = "
PRAGMA query_only = ON;
PRAGMA cache_size = -8192;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
";

const STATEMENTS_KEPT: usize = 64;

/// The path of a partition's file.
pub(super) fn path_of(dir: &Path, partition: Partition) -> PathBuf {
    dir.join(format!("p{partition}.sqlite"))
}

/// Lists the partitions that have a file.
pub(super) fn partitions_in(dir: &Path) -> Result<Vec<Partition>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|cause| unusable(dir, cause))? {
        let name = entry.map_err(|cause| unusable(dir, cause))?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix('p')?.strip_suffix(".sqlite"));
        found.extend(digits.and_then(|digits| digits.parse::<Partition>().ok()));
    }
    Ok(found)
}

/// Opens the one connection that writes, with the schema in place.
pub(super) fn writer(path: &Path) -> Result<Connection> {
    let wrong = |cause| nothing_changed(path, &cause);
    // SQLite gives the files next to it the same mode.
    permissions::open_or_create(path).map_err(|cause| unusable(path, cause))?;
    let sql = Connection::open(path).map_err(wrong)?;
    sql.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    sql.execute_batch(WRITER).map_err(wrong)?;
    check_integrity(&sql, path)?;
    match format_of(&sql).map_err(wrong)? {
        None => lay_out(&sql).map_err(wrong)?,
        Some(FORMAT) => check_layout(&sql, path)?,
        Some(older @ 2..FORMAT) => migrate_from(&sql, older).map_err(wrong)?,
        Some(other) => {
            let path = path.display();
            let message = format!("{path} has format {other}; this program reads format {FORMAT}");
            return Err(Error::new(StoreErrorKind::Unreadable, message));
        }
    }
    Ok(sql)
}

/// Rejects a file whose pages are inconsistent: a row that cannot be found any more has no checksum
/// to fail.
fn check_integrity(sql: &Connection, path: &Path) -> Result<()> {
    if std::fs::metadata(path).map_or(0, |found| found.len()) > LOOKED_THROUGH_LEN_MAX {
        return Ok(());
    }
    let found = sql.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|cause| nothing_changed(path, &cause))? {
        fine if fine == "ok" => Ok(()),
        wrong => Err(damaged(path, &wrong)),
    }
}

/// Rejects a file whose tables are not described as they were created.
fn check_layout(sql: &Connection, path: &Path) -> Result<()> {
    let wrong = |cause| nothing_changed(path, &cause);
    if meta(sql, "layout").map_err(wrong)? == Some(layout_of(sql).map_err(wrong)?) {
        return Ok(());
    }
    Err(damaged(path, "its table definitions are not those that were created"))
}

/// A checksum of SQLite's description of the file's contents.
fn layout_of(sql: &Connection) -> rusqlite::Result<i64> {
    let mut parts =
        sql.prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY name")?;
    let mut parts = parts.query([])?;
    let mut sum = RowChecksum::of("sqlite_schema");
    while let Some(part) = parts.next()? {
        for column in [0, 1, 2, 4] {
            sum = sum.maybe_text(part.get::<_, Option<String>>(column)?.as_deref());
        }
        sum = sum.number(part.get(3)?);
    }
    Ok(sum.finish(&[]))
}

/// Opens a connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let wrong = |cause| nothing_changed(path, &cause);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = Connection::open_with_flags(path, flags).map_err(wrong)?;
    sql.execute_batch(READER).map_err(wrong)?;
    Ok(sql)
}

/// Opens a connection that only checkpoints.
pub(super) fn mover(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(|cause| nothing_changed(path, &cause))
}

/// Reads a number from the `meta` table.
pub(super) fn meta(sql: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut found = sql.prepare_cached("SELECT value, sum FROM meta WHERE name = ?1")?;
    let found = found.query_row([name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    match found.optional()? {
        Some((value, sum)) if sum_of_meta(name, value).matches(sum, Some(&[])) => Ok(Some(value)),
        Some(_) => Err(super::rows::damaged(format!("the number {name:?} is not what was written"))),
        None => Ok(None),
    }
}

/// Writes a number to the `meta` table.
pub(super) fn set_meta(sql: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO meta (name, value, sum) VALUES (?1, ?2, ?3)")?
        .execute((name, value, sum_of_meta(name, value).finish(&[])))
        .map(drop)
}

/// Returns the stored secret, or stores the offered one when there is none.
pub(super) fn keep_secret<const LEN: usize>(
    sql: &Connection,
    offered: [u8; LEN],
) -> rusqlite::Result<[u8; LEN]> {
    sql.prepare_cached("INSERT OR IGNORE INTO meta (name, value) VALUES ('secret', ?1)")?
        .execute([offered])?;
    sql.prepare_cached("SELECT value FROM meta WHERE name = 'secret'")?.query_row([], |row| row.get(0))
}

fn sum_of_meta(name: &str, value: i64) -> RowChecksum {
    RowChecksum::of("meta").text(name).number(value)
}

fn format_of(sql: &Connection) -> rusqlite::Result<Option<i64>> {
    let tables: i64 = sql.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(None);
    }
    if has_sums(sql, "meta")? {
        return Ok(Some(meta(sql, "format")?.unwrap_or(0)));
    }
    let format = sql.query_row("SELECT value FROM meta WHERE name = 'format'", [], |row| row.get(0));
    Ok(Some(format.optional()?.unwrap_or(0)))
}

/// Returns whether the rows of a table have checksums.
fn has_sums(sql: &Connection, table: &str) -> rusqlite::Result<bool> {
    has_column(sql, table, "sum")
}

fn has_column(sql: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    let has_column = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2)";
    sql.query_row(has_column, [table, column], |row| row.get(0))
}

fn lay_out(sql: &Connection) -> rusqlite::Result<()> {
    let whole = sql.unchecked_transaction()?;
    for tables in [TABLES, RECORDS, COST_TABLES, JOURNAL, ATTEMPTS, EVENTS, AUDIT_LOG] {
        whole.execute_batch(tables)?;
    }
    record_layout(&whole)?;
    whole.commit()
}

/// Records the format, and SQLite's description of it.
fn record_layout(sql: &Connection) -> rusqlite::Result<()> {
    set_meta(sql, "format", FORMAT)?;
    set_meta(sql, "layout", layout_of(sql)?)
}

/// Migrates an older file. Format 2 had another table of idempotency records and never filled it;
/// format 3 had no costs, format 4 no journal, format 5 no checksums (its rows stay without),
/// format 6 no attempts, format 7 a 0 in rows without a checksum, other names and no restore rates
/// in the tables of costs, format 8 no events of deployments, and format 9 no audit log.
fn migrate_from(sql: &Connection, older: i64) -> rusqlite::Result<()> {
    let whole = sql.unchecked_transaction()?;
    if older == 2 {
        whole.execute_batch("DROP TABLE records")?;
        whole.execute_batch(RECORDS)?;
    }
    if older <= 3 {
        whole.execute_batch(COST_TABLES)?;
    }
    if older <= 4 {
        whole.execute_batch(JOURNAL)?;
    }
    if older <= 6 {
        whole.execute_batch(ATTEMPTS)?;
    }
    if older <= 8 {
        whole.execute_batch(EVENTS)?;
    }
    if older <= 9 {
        whole.execute_batch(AUDIT_LOG)?;
    }
    if has_column(&whole, "rate_limit_buckets", "refill_per_s")? {
        whole.execute_batch(COST_RATES)?;
    }
    for table in CHECKED {
        let none = row_checksum::NONE;
        let change = if has_sums(&whole, table)? {
            format!("UPDATE {table} SET sum = {none} WHERE sum = 0")
        } else {
            format!("ALTER TABLE {table} ADD COLUMN sum INTEGER NOT NULL DEFAULT {none}")
        };
        whole.execute_batch(&change)?;
    }
    record_layout(&whole)?;
    whole.commit()
}
