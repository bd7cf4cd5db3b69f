//! Leases, buckets and windows as rows: read one, keep one. What follows from what is decided elsewhere.

use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::Time;
use tidegate_core::shared::bucket::Level;
use tidegate_core::shared::lease;
use tidegate_core::shared::window::Window;

use super::rows::{micros, time};

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

/// The lease of a name; one that nobody has held is free.
pub(super) fn lease(sql: &Connection, name: &str) -> rusqlite::Result<lease::State> {
    sql.prepare_cached("SELECT fence, until FROM leases WHERE name = ?1")?
        .query_row([name], |row| Ok(lease::State { fence: number(row, 0)?, until: time(row, 1)? }))
        .optional()
        .map(Option::unwrap_or_default)
}

/// Keeps a lease under its name.
pub(super) fn keep_lease(sql: &Connection, name: &str, state: lease::State) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO leases (name, fence, until) VALUES (?1, ?2, ?3)")?
        .execute((name, state.fence.cast_signed(), micros(state.until)))
        .map(drop)
}

/// What is in a bucket.
pub(super) fn bucket(sql: &Connection, name: &str) -> rusqlite::Result<Option<Level>> {
    sql.prepare_cached("SELECT tokens, carry, at, capacity, refill_per_s FROM buckets WHERE name = ?1")?
        .query_row([name], |row| {
            Ok(Level {
                tokens: number(row, 0)?,
                carry: number(row, 1)?,
                at: time(row, 2)?,
                capacity: number(row, 3)?,
                refill_per_s: number(row, 4)?,
            })
        })
        .optional()
}

/// Keeps what is in a bucket.
pub(super) fn keep_bucket(sql: &Connection, name: &str, level: Level) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "INSERT OR REPLACE INTO buckets (name, tokens, carry, at, capacity, refill_per_s)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((
        name,
        level.tokens.cast_signed(),
        level.carry.cast_signed(),
        micros(level.at),
        level.capacity.cast_signed(),
        level.refill_per_s.cast_signed(),
    ))
    .map(drop)
}

/// The window of a key, open or closed.
pub(super) fn window(sql: &Connection, key: &str) -> rusqlite::Result<Option<Window>> {
    sql.prepare_cached("SELECT level, until FROM windows WHERE key = ?1")?
        .query_row([key], |row| Ok(Window { level: row.get(0)?, until: time(row, 1)? }))
        .optional()
}

/// Keeps a window under its key, and removes a few that have closed, so that they do not gather.
pub(super) fn keep_window(sql: &Connection, key: &str, window: Window, now: Time) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "DELETE FROM windows WHERE key IN (
             SELECT key FROM windows WHERE until >= 0 AND until <= ?1 ORDER BY until LIMIT 2)",
    )?
    .execute([micros(now)])?;
    sql.prepare_cached("INSERT OR REPLACE INTO windows (key, level, until) VALUES (?1, ?2, ?3)")?
        .execute((key, window.level, micros(window.until)))
        .map(drop)
}
