//! Pages of operations, newest first. Rows are scanned in order, and a page ends when it is full or
//! enough rows were scanned; operations that did not succeed have an index of their own.

use rusqlite::{CachedStatement, Connection, Rows};
use tidegate_core::bounds::LIST_SCANNED_MAX;
use tidegate_core::{EndState, Seq, State};
use tidegate_store::log::{StoredEntry, StoredPage, StoredQuery};

use super::rows;
use crate::query_filter::{matches_end_state, matches_group_and_kind};

const NEWEST: &str = "SELECT seq, grp, kind FROM operations WHERE seq <= ?1 ORDER BY seq DESC";
const UNSUCCESSFUL: &str = "
SELECT o.seq, o.grp, o.kind FROM results r CROSS JOIN operations o ON o.seq = r.seq
WHERE r.state <> 'succeeded' AND r.state = ?2 AND r.seq <= ?1 ORDER BY r.seq DESC";

/// Reads the page that a query selects.
pub(super) fn page(sql: &Connection, query: &StoredQuery) -> rusqlite::Result<StoredPage> {
    let mut page = StoredPage::default();
    let Some(first) = query.before.map_or(Some(u64::MAX), |before| before.0.checked_sub(1)) else {
        return Ok(page);
    };
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    let mut outline = sql.prepare_cached(rows::OUTLINE)?;
    let mut walk = sql.prepare_cached(walk_of(query))?;
    let mut walk = start(&mut walk, query, first)?;
    let (mut scanned, mut looked_at) = (0, None);
    while let Some(row) = walk.next()? {
        if page.items.len() >= query.limit || scanned >= LIST_SCANNED_MAX {
            page.next = looked_at;
            break;
        }
        scanned += 1;
        let seq: i64 = row.get(0)?;
        looked_at = Some(Seq(seq.cast_unsigned()));
        if !matches_group_and_kind(query, row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?) {
            continue;
        }
        let found: StoredEntry = outline.query_row([seq], rows::outline)?;
        if matches_end_state(query, found.result.as_ref().map(|result| result.state)) {
            page.items.push(found);
        }
    }
    Ok(page)
}

const fn walk_of(query: &StoredQuery) -> &'static str {
    match query.ended {
        Some(EndState::Failed | EndState::Canceled) => UNSUCCESSFUL,
        Some(EndState::Succeeded) | None => NEWEST,
    }
}

fn start<'a>(
    walk: &'a mut CachedStatement<'_>,
    query: &StoredQuery,
    first: i64,
) -> rusqlite::Result<Rows<'a>> {
    match query.ended {
        Some(ended @ (EndState::Failed | EndState::Canceled)) => {
            walk.query((first, State::from(ended).as_str()))
        }
        Some(EndState::Succeeded) | None => walk.query([first]),
    }
}
