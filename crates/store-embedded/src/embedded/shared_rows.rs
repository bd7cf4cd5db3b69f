//! Leases, buckets and windows as rows: reads, lists and writes them. State transitions are decided
//! elsewhere.

use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::Time;
use tidegate_core::shared::bucket::Level;
use tidegate_core::shared::lease;
use tidegate_core::shared::window::HydrationWindow;
use tidegate_store::NamedPage;

use super::row_checksum::RowChecksum;
use super::rows::{damaged, micros, time};

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn sum_of_lease(name: &str, state: lease::LeaseState) -> RowChecksum {
    RowChecksum::of("leases").text(name).number(state.fence.cast_signed()).number(micros(state.until))
}

fn sum_of_bucket(name: &str, level: Level) -> RowChecksum {
    let numbers = [level.tokens, level.carry, level.at.as_micros(), level.capacity, level.refill_per_s];
    numbers
        .into_iter()
        .fold(RowChecksum::of("buckets").text(name), |sum, number| sum.number(number.cast_signed()))
}

fn sum_of_window(key: &str, window: HydrationWindow) -> RowChecksum {
    RowChecksum::of("windows").text(key).number(window.level.into()).number(micros(window.until))
}

/// Returns what was read, if it matches the checksum in the row's last column.
fn checked<T>(row: &Row<'_>, column: usize, sum: RowChecksum, read: T) -> rusqlite::Result<T> {
    if sum.matches(row.get(column)?, Some(&[])) {
        return Ok(read);
    }
    Err(damaged("a lease, a bucket or a window is not what was written".into()))
}

/// Reads the lease of a name; one that was never held is free.
pub(super) fn lease(sql: &Connection, name: &str) -> rusqlite::Result<lease::LeaseState> {
    sql.prepare_cached("SELECT fence, until, sum FROM leases WHERE name = ?1")?
        .query_row([name], |row| read_lease(row, name))
        .optional()
        .map(Option::unwrap_or_default)
}

/// Reads a row of `fence, until, sum`.
fn read_lease(row: &Row<'_>, name: &str) -> rusqlite::Result<lease::LeaseState> {
    let state = lease::LeaseState { fence: number(row, 0)?, until: time(row, 1)? };
    checked(row, 2, sum_of_lease(name, state), state)
}

/// Lists a page of leases, by name.
pub(super) fn list_leases(
    sql: &Connection,
    after: Option<&str>,
    most: usize,
) -> rusqlite::Result<NamedPage<lease::LeaseState>> {
    let text = "SELECT fence, until, sum, name FROM leases WHERE name > ?1 ORDER BY name LIMIT ?2";
    list(sql, text, after, most, |row| {
        let name: String = row.get(3)?;
        Ok((read_lease(row, &name)?, name))
    })
}

/// Lists a page of rows, by name. One row more than fits tells whether there are more.
fn list<T>(
    sql: &Connection,
    text: &str,
    after: Option<&str>,
    most: usize,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<(T, String)>,
) -> rusqlite::Result<NamedPage<T>> {
    let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
    let mut some = sql.prepare_cached(text)?;
    let found = some.query_map((after.unwrap_or_default(), limit), read)?;
    let mut items =
        found.map(|row| row.map(|(item, name)| (name, item))).collect::<rusqlite::Result<Vec<_>>>()?;
    let is_last = items.len() <= most;
    items.truncate(most);
    let next = items.last().filter(|_| !is_last).map(|(name, _)| name.clone());
    Ok(NamedPage { items, next })
}

/// Writes a lease under its name.
pub(super) fn keep_lease(sql: &Connection, name: &str, state: lease::LeaseState) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO leases (name, fence, until, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute((
            name,
            state.fence.cast_signed(),
            micros(state.until),
            sum_of_lease(name, state).finish(&[]),
        ))
        .map(drop)
}

/// Reads the level of a bucket.
pub(super) fn bucket(sql: &Connection, name: &str) -> rusqlite::Result<Option<Level>> {
    sql.prepare_cached("SELECT tokens, carry, at, capacity, refill_per_s, sum FROM buckets WHERE name = ?1")?
        .query_row([name], |row| read_bucket(row, name))
        .optional()
}

/// Reads a row of `tokens, carry, at, capacity, refill_per_s, sum`.
fn read_bucket(row: &Row<'_>, name: &str) -> rusqlite::Result<Level> {
    let level = Level {
        tokens: number(row, 0)?,
        carry: number(row, 1)?,
        at: time(row, 2)?,
        capacity: number(row, 3)?,
        refill_per_s: number(row, 4)?,
    };
    checked(row, 5, sum_of_bucket(name, level), level)
}

/// Lists a page of buckets, by name.
pub(super) fn list_buckets(
    sql: &Connection,
    after: Option<&str>,
    most: usize,
) -> rusqlite::Result<NamedPage<Level>> {
    let text = "SELECT tokens, carry, at, capacity, refill_per_s, sum, name FROM buckets
         WHERE name > ?1 ORDER BY name LIMIT ?2";
    list(sql, text, after, most, |row| {
        let name: String = row.get(6)?;
        Ok((read_bucket(row, &name)?, name))
    })
}

/// Removes a bucket; returns `false` if it does not exist.
pub(super) fn forget_bucket(sql: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(sql.prepare_cached("DELETE FROM buckets WHERE name = ?1")?.execute([name])? > 0)
}

/// Writes the level of a bucket.
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
        sum_of_bucket(name, level).finish(&[]),
    ))
    .map(drop)
}

/// Reads the window of a key, open or closed.
pub(super) fn window(sql: &Connection, key: &str) -> rusqlite::Result<Option<HydrationWindow>> {
    sql.prepare_cached("SELECT level, until, sum FROM windows WHERE key = ?1")?
        .query_row([key], |row| {
            let window = HydrationWindow { level: row.get(0)?, until: time(row, 1)? };
            checked(row, 2, sum_of_window(key, window), window)
        })
        .optional()
}

/// Writes a window under its key, and removes a few closed ones, so that they do not accumulate.
pub(super) fn keep_window(
    sql: &Connection,
    key: &str,
    window: HydrationWindow,
    now: Time,
) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "DELETE FROM windows WHERE key IN (
             SELECT key FROM windows WHERE until >= 0 AND until <= ?1 ORDER BY until LIMIT 2)",
    )?
    .execute([micros(now)])?;
    sql.prepare_cached("INSERT OR REPLACE INTO windows (key, level, until, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute((key, window.level, micros(window.until), sum_of_window(key, window).finish(&[])))
        .map(drop)
}
