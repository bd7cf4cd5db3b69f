//! Finds results that are too old to keep. Results are stored in the order of acceptance, and
//! mostly ended in it, so the old ones are found at the front. Old results behind younger ones are
//! found by a second scan that resumes, each time, where it stopped. Both scan a bounded number of
//! rows.

use rusqlite::Connection;
use tidegate_core::{Seq, Time};

use super::rows;
use super::writer::{StepContext, StepResult};

/// The rows that one transaction removes.
pub(super) const CHUNK: usize = 256;
/// The rows that one scan reads.
const SCANNED_MAX: usize = 50_000;
/// The number of consecutive young results that ends the first scan.
const YOUNG_MAX: usize = 2_048;
/// The rows that the second scan reads each time.
const ROVED_MAX: usize = 4_096;

/// An expired result, as it was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiredResult {
    seq: Seq,
    at: Time,
}

/// A scan over results, in the order of acceptance.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiryScan {
    /// The position of the scan.
    pub(super) after: Seq,
    /// Whether there is nothing further to find.
    pub(super) over: bool,
    /// Whether that is because there are no more results.
    pub(super) at_end: bool,
    ended_before: Time,
    left: usize,
    young: usize,
    young_max: usize,
}

impl ExpiryScan {
    /// Scans from the first result on, until they are young.
    pub(super) const fn from_start(ended_before: Time) -> Self {
        Self::new(Seq(0), ended_before, SCANNED_MAX, YOUNG_MAX)
    }

    /// Scans a stretch from where the last scan stopped.
    pub(super) const fn resume_after(after: Seq, ended_before: Time) -> Self {
        Self::new(after, ended_before, ROVED_MAX, ROVED_MAX)
    }

    const fn new(after: Seq, ended_before: Time, left: usize, young_max: usize) -> Self {
        Self { after, over: false, at_end: false, ended_before, left, young: 0, young_max }
    }

    /// Returns the next expired results, at most `most`.
    pub(super) fn next(&mut self, sql: &Connection, most: usize) -> rusqlite::Result<Vec<ExpiredResult>> {
        let mut found = Vec::new();
        let mut walk = sql.prepare_cached(rows::ENDED)?;
        let mut walk = walk.query([self.after.0.cast_signed()])?;
        while found.len() < most {
            let Some(row) = walk.next()? else {
                (self.over, self.at_end) = (true, true);
                break;
            };
            if self.left == 0 || self.young >= self.young_max {
                self.over = true;
                break;
            }
            let (seq, at, is_whole) = rows::ended(row)?;
            let old = ExpiredResult { seq, at };
            self.after = old.seq;
            self.left -= 1;
            // A damaged one may not be old at all.
            if old.at < self.ended_before && is_whole {
                self.young = 0;
                found.push(old);
            } else {
                self.young += 1;
            }
        }
        Ok(found)
    }
}

/// Removes results that are still as they were seen, and their operations and attempts. An
/// operation that was rerun has no such result any more, and stays.
pub(super) fn remove(desk: &mut StepContext<'_>, old: &[ExpiredResult]) -> StepResult<usize> {
    let mut results = desk.sql.prepare_cached("DELETE FROM results WHERE seq = ?1 AND at = ?2")?;
    let mut operations = desk.sql.prepare_cached("DELETE FROM operations WHERE seq = ?1")?;
    let mut attempts = desk.sql.prepare_cached("DELETE FROM attempts WHERE seq = ?1")?;
    let mut removed = 0;
    for ExpiredResult { seq, at } in old {
        if results.execute((seq.0.cast_signed(), rows::micros(*at)))? > 0 {
            let gone = operations.execute([seq.0.cast_signed()])?;
            attempts.execute([seq.0.cast_signed()])?;
            desk.meta.operations = desk.meta.operations.saturating_sub(gone as u64);
            removed += 1;
        }
    }
    Ok(Ok(removed))
}
