//! Validation of calls before a backend acts on them, with error messages shared by all backends: a
//! caller must not have to know which one it talks to.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::bounds::{COSTS_MAX, EXTERNAL_ID_LEN_MAX, MEMO_LEN_MAX};
use tidegate_core::id::Partition;
use tidegate_core::shared::bucket::ReservationRequest;

use crate::attempt::StoredAttempt;
use crate::log::{Batch, Lsn};
use crate::{Error, Result, StoreErrorKind, codec};

/// Checks that a store has at least one partition.
///
/// # Errors
/// `Invalid` for zero.
pub fn check_partition_count(wanted: Partition) -> Result<()> {
    if wanted == 0 { Err(invalid_error("a store has at least one partition")) } else { Ok(()) }
}

/// Checks that no bucket is named twice: it would be treated as two buckets.
///
/// # Errors
/// `Invalid`, with its name.
pub fn check_unique_names(wanted: &[ReservationRequest]) -> Result<()> {
    for (place, want) in wanted.iter().enumerate() {
        if wanted[..place].iter().any(|earlier| earlier.name == want.name) {
            return Err(invalid_error(format!("the bucket {} is named twice", want.name)));
        }
    }
    Ok(())
}

/// Checks that the sequence numbers of new operations increase, and that none exceeds what the
/// backend can sort.
///
/// # Errors
/// `Invalid`, with the sequence number.
pub fn check_seqs(batch: &Batch, largest: Seq) -> Result<()> {
    for pair in batch.operations.windows(2) {
        if pair[0].seq >= pair[1].seq {
            let (earlier, later) = (pair[0].seq.0, pair[1].seq.0);
            return Err(invalid_error(format!(
                "operation {later} comes after operation {earlier}: seqs must grow"
            )));
        }
    }
    let results = batch.results.iter().map(|result| result.seq);
    let last = batch.operations.last().map(|operation| operation.seq);
    let attempts = batch.attempts.iter().map(|attempt| attempt.seq);
    match results.chain(last).chain(attempts).chain(batch.reopened.iter().copied()).max() {
        Some(seq) if seq > largest => {
            Err(invalid_error(format!("the seq {} is too large; the largest is {}", seq.0, largest.0)))
        }
        _ => Ok(()),
    }
}

/// Checks that an append has a bounded number of costs.
///
/// # Errors
/// `Invalid`, with the number of costs.
pub fn check_cost_count(batch: &Batch) -> Result<()> {
    match batch.costs.len() {
        some if some <= COSTS_MAX => Ok(()),
        many => Err(invalid_error(format!("an append keeps at most {COSTS_MAX} costs; these are {many}"))),
    }
}

/// Checks that what executors keep with attempts is bounded.
///
/// # Errors
/// `Invalid`, with the sequence number.
pub fn check_attempts(batch: &Batch) -> Result<()> {
    let is_too_long = |attempt: &&StoredAttempt| {
        attempt.memo.len() > MEMO_LEN_MAX
            || attempt.external_id.as_ref().is_some_and(|id| id.len() > EXTERNAL_ID_LEN_MAX)
    };
    match batch.attempts.iter().find(is_too_long) {
        Some(attempt) => Err(invalid_error(format!(
            "an attempt of operation {} keeps at most {MEMO_LEN_MAX} bytes and an id of {EXTERNAL_ID_LEN_MAX}",
            attempt.seq.0
        ))),
        None => Ok(()),
    }
}

/// Checks, for a store without an outbox, that an append drains no outbox rows.
///
/// # Errors
/// `Invalid`, with the number of rows.
pub fn check_nothing_drained(batch: &Batch) -> Result<()> {
    match batch.drained.len() {
        0 => Ok(()),
        rows => Err(invalid_error(format!("this store has no outbox to drain {rows} rows from"))),
    }
}

/// Checks that a snapshot can be read back: it replaces the log.
///
/// # Errors
/// `Invalid`, with the part.
pub fn check_snapshot_parts(parts: &[Bytes]) -> Result<()> {
    for (place, part) in parts.iter().enumerate() {
        codec::decode(part).map_err(|cause| {
            invalid_error(format!("part {} of the snapshot cannot be read back", place + 1))
                .with_source(cause)
        })?;
    }
    Ok(())
}

/// The error of an append that follows a failed one.
#[must_use]
pub fn not_following_error(follows: Lsn, last: Lsn) -> Error {
    let message = format!(
        "append {} failed, so the one after it was not written; the last append is {}",
        follows.0, last.0
    );
    Error::new(StoreErrorKind::Unavailable, message)
}

/// The error of a snapshot that is ahead of the log.
#[must_use]
pub fn snapshot_ahead_error(upto: Lsn, last: Lsn) -> Error {
    invalid_error(format!("a snapshot up to append {} is ahead of the last append, {}", upto.0, last.0))
}

/// The error of a snapshot that is older than the stored one.
#[must_use]
pub fn snapshot_older_error(upto: Lsn, newest: Lsn) -> Error {
    invalid_error(format!("a snapshot up to append {} is older than the one up to {}", upto.0, newest.0))
}

/// The error of an invalid call.
#[must_use]
pub fn invalid_error(message: impl Into<String>) -> Error {
    Error::new(StoreErrorKind::Invalid, message)
}
