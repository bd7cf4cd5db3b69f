//! Checks of a call before the server is asked, and the meaning of the server's refusals.

use tidegate_core::Seq;
use tidegate_store::checks::{
    check_attempts, check_cost_count, check_seqs, snapshot_ahead_error, snapshot_older_error,
};
use tidegate_store::log::{Batch, Lsn, Ownership};
use tidegate_store::{Error, Result, StoreErrorKind};

pub(crate) use tidegate_store::checks::{
    check_partition_count, check_snapshot_parts, check_unique_names, invalid_error, not_following_error,
};

/// The largest number that sorts correctly as a bigint.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// Checks a name: PostgreSQL stores no text with a zero byte.
pub(crate) fn name_can_be_kept(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(invalid_error("PostgreSQL cannot store a name with a zero byte"));
    }
    Ok(())
}

/// Checks that the seqs of new operations grow and fit, and that every name can be stored.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    check_seqs(batch, SEQ_MAX)?;
    check_cost_count(batch)?;
    check_attempts(batch)?;
    for operation in &batch.operations {
        name_can_be_kept(&operation.group)?;
        name_can_be_kept(&operation.kind)?;
        name_can_be_kept(operation.key.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// The error when another process took rows out of the outbox: whoever drains it reads it again.
pub(crate) fn not_waiting(missing: i64, drained: usize) -> Error {
    let message = format!("{missing} of {drained} rows of the outbox are missing: nothing was written");
    Error::new(StoreErrorKind::Unavailable, message)
}

/// Maps a refusal of a server-side step to an error.
pub(crate) fn refusal(owner: Ownership, verdict: &str, number: i64) -> Error {
    let (partition, epoch, number) = (owner.partition, owner.epoch.0, number.cast_unsigned());
    match verdict {
        "fenced" => Error::new(
            StoreErrorKind::Fenced,
            format!(
                "epoch {epoch} of partition {partition} has ended (a newer owner exists; the newest is {number})"
            ),
        ),
        "released" => Error::new(
            StoreErrorKind::Fenced,
            format!(
                "epoch {epoch} of partition {partition} has ended (it was released; the newest is {number})"
            ),
        ),
        _ => Error::new(
            StoreErrorKind::Unreadable,
            format!("partition {partition} returned the unexpected verdict {verdict:?}"),
        ),
    }
}

/// Maps a refusal of a snapshot, which must cover the log up to an existing append and replace no
/// later one.
pub(crate) fn snapshot_refusal(owner: Ownership, upto: Lsn, verdict: &str, number: i64) -> Error {
    match verdict {
        "ahead" => snapshot_ahead_error(upto, Lsn(number.cast_unsigned())),
        "older" => snapshot_older_error(upto, Lsn(number.cast_unsigned())),
        _ => refusal(owner, verdict, number),
    }
}
