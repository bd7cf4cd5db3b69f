//! Replays a partition from the newest intact snapshot and the appends after it. Nothing is skipped
//! silently: a missing append makes the partition unreadable.

use std::sync::Arc;

use rusqlite::Connection;
use tidegate_core::Fact;
use tidegate_store::log::Lsn;
use tidegate_store::{Error, Result, StoreErrorKind, codec};

use super::errors::nothing_changed;
use super::partition::PartitionFile;
use super::row_checksum::RowChecksum;
use super::schema::meta;
use super::snapshot::{self, Snapshot};
use super::tail::PendingAppend;

/// Passes the snapshot's parts and every later append to `hand`, in order, until it wants no more;
/// returns the number of the last append.
pub(super) fn replay(
    file: &PartitionFile,
    pending: &[Arc<PendingAppend>],
    mut hand: impl FnMut(Vec<Fact>) -> bool,
) -> Result<Lsn> {
    file.readers.with(|sql| {
        let wrong = |cause| nothing_changed(file.readers.path(), &cause);
        let trimmed = Lsn(meta(sql, "trimmed").map_err(wrong)?.unwrap_or(0).cast_unsigned());
        let mut last = Lsn(0);
        if let Some((upto, snapshot)) = start(file, trimmed)? {
            for part in snapshot.parts() {
                if !hand(codec::decode(&part?)?) {
                    return Ok(upto);
                }
            }
            last = upto;
        }
        let mut last = appends(sql, file, last, &mut hand)?;
        let known = last;
        for append in pending.iter().filter(|append| append.lsn > known) {
            last = append.lsn;
            if !hand(codec::decode(&append.facts)?) {
                break;
            }
        }
        Ok(last)
    })
}

/// The snapshot to start from: the newest intact one, if every append after it is still there.
/// Without a snapshot, the log must reach back to the first append.
fn start(file: &PartitionFile, trimmed: Lsn) -> Result<Option<(Lsn, Snapshot)>> {
    let mut damaged = None;
    for (upto, path) in snapshot::all(file.dir(), file.partition)? {
        if upto < trimmed {
            break;
        }
        match Snapshot::open(&path, upto) {
            Ok(whole) => return Ok(Some((upto, whole))),
            Err(error) => damaged = damaged.or(Some(error)),
        }
    }
    if trimmed == Lsn(0) {
        return Ok(None);
    }
    let message = format!(
        "partition {} in {} cannot be read: its log starts after append {} and no whole snapshot reaches that far",
        file.partition,
        file.dir().display(),
        trimmed.0
    );
    let error = Error::new(StoreErrorKind::Unreadable, message);
    Err(match damaged {
        Some(cause) => error.with_source(cause),
        None => error,
    })
}

/// The checksum of an append, without its facts.
pub(super) fn sum_of_append(lsn: Lsn) -> RowChecksum {
    RowChecksum::of("log").number(lsn.0.cast_signed())
}

fn appends(
    sql: &Connection,
    file: &PartitionFile,
    after: Lsn,
    hand: &mut impl FnMut(Vec<Fact>) -> bool,
) -> Result<Lsn> {
    let path = file.readers.path();
    let wrong = |cause| nothing_changed(path, &cause);
    let mut rows =
        sql.prepare_cached("SELECT lsn, facts, sum FROM log WHERE lsn > ?1 ORDER BY lsn").map_err(wrong)?;
    let mut rows = rows.query([after.0.cast_signed()]).map_err(wrong)?;
    let mut last = after;
    while let Some(row) = rows.next().map_err(wrong)? {
        let lsn = Lsn(row.get::<_, i64>(0).map_err(wrong)?.cast_unsigned());
        if lsn.0 != last.0 + 1 {
            let message = format!("{} is damaged: append {} is missing", path.display(), last.0 + 1);
            return Err(Error::new(StoreErrorKind::Unreadable, message));
        }
        let facts = row.get_ref(1).map_err(wrong)?.as_blob().map_err(|cause| wrong(cause.into()))?;
        if !sum_of_append(lsn).matches(row.get(2).map_err(wrong)?, Some(facts)) {
            let message = format!("{} is damaged: append {} is not what was written", path.display(), lsn.0);
            return Err(Error::new(StoreErrorKind::Unreadable, message));
        }
        let facts = codec::decode(facts).map_err(|cause| {
            let message = format!("append {} in {} cannot be read", lsn.0, path.display());
            Error::new(StoreErrorKind::Unreadable, message).with_source(cause)
        })?;
        last = lsn;
        if !hand(facts) {
            break;
        }
    }
    Ok(last)
}
