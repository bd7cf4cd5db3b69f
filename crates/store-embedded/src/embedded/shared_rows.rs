//! Leases, buckets and windows as rows: read one, keep one. What follows from what is decided elsewhere.

use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::Time;
use tidegate_core::shared::bucket::Level;
use tidegate_core::shared::lease;
use tidegate_core::shared::window::Window;

use super::rows::{damaged, micros, time};
use super::sums::Sum;

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn sum_of_lease(name: &str, state: lease::State) -> Sum {
    Sum::of("leases").text(name).number(state.fence.cast_signed()).number(micros(state.until))
}

fn sum_of_bucket(name: &str, level: Level) -> Sum {
    let numbers = [level.tokens, level.carry, level.at.as_micros(), level.capacity, level.refill_per_s];
    numbers.into_iter().fold(Sum::of("buckets").text(name), |sum, number| sum.number(number.cast_signed()))
}

fn sum_of_window(key: &str, window: Window) -> Sum {
    Sum::of("windows").text(key).number(window.level.into()).number(micros(window.until))
}

/// What was read, if the row's last column, its checksum, is that of it.
fn checked<T>(row: &Row<'_>, column: usize, sum: Sum, read: T) -> rusqlite::Result<T> {
    if sum.matches(row.get(column)?, Some(&[])) {
        return Ok(read);
    }
    Err(damaged("a lease, a bucket or a window is not what was written".into()))
}

/// The lease of a name; one that nobody has held is free.
pub(super) fn lease(sql: &Connection, name: &str) -> rusqlite::Result<lease::State> {
    sql.prepare_cached("SELECT fence, until, sum FROM leases WHERE name = ?1")?
        .query_row([name], |row| {
            let state = lease::State { fence: number(row, 0)?, until: time(row, 1)? };
            checked(row, 2, sum_of_lease(name, state), state)
        })
        .optional()
        .map(Option::unwrap_or_default)
}

/// Keeps a lease under its name.
pub(super) fn keep_lease(sql: &Connection, name: &str, state: lease::State) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO leases (name, fence, until, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute((name, state.fence.cast_signed(), micros(state.until), sum_of_lease(name, state).with(&[])))
        .map(drop)
}

/// What is in a bucket.
pub(super) fn bucket(sql: &Connection, name: &str) -> rusqlite::Result<Option<Level>> {
    sql.prepare_cached("SELECT tokens, carry, at, capacity, refill_per_s, sum FROM buckets WHERE name = ?1")?
        .query_row([name], |row| {
            let level = Level {
                tokens: number(row, 0)?,
                carry: number(row, 1)?,
                at: time(row, 2)?,
                capacity: number(row, 3)?,
                refill_per_s: number(row, 4)?,
            };
            checked(row, 5, sum_of_bucket(name, level), level)
        })
        .optional()
}

/// Keeps what is in a bucket.
pub(super) fn keep_bucket(sql: &Connection, name: &str, level: Level) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "INSERT OR REPLACE INTO buckets (name, tokens, carry, at, capacity, refill_per_s, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((
        name,
        level.tokens.cast_signed(),
        level.carry.cast_signed(),
        micros(level.at),
        level.capacity.cast_signed(),
        level.refill_per_s.cast_signed(),
        sum_of_bucket(name, level).with(&[]),
    ))
    .map(drop)
}

/// The window of a key, open or closed.
pub(super) fn window(sql: &Connection, key: &str) -> rusqlite::Result<Option<Window>> {
    sql.prepare_cached("SELECT level, until, sum FROM windows WHERE key = ?1")?
        .query_row([key], |row| {
            let window = Window { level: row.get(0)?, until: time(row, 1)? };
            checked(row, 2, sum_of_window(key, window), window)
        })
        .optional()
}

/// Keeps a window under its key, and removes a few that have closed, so that they do not gather.
pub(super) fn keep_window(sql: &Connection, key: &str, window: Window, now: Time) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "DELETE FROM windows WHERE key IN (
             SELECT key FROM windows WHERE until >= 0 AND until <= ?1 ORDER BY until LIMIT 2)",
    )?
    .execute([micros(now)])?;
    sql.prepare_cached("INSERT OR REPLACE INTO windows (key, level, until, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute((key, window.level, micros(window.until), sum_of_window(key, window).with(&[])))
        .map(drop)
}
