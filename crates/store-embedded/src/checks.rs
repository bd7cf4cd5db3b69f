//! Checks of a call before the store is touched: those of every store, and those that these two
//! stores can make at once because the log is theirs alone.

use tidegate_core::Seq;
use tidegate_store::Result;
use tidegate_store::checks::{
    invalid_error, not_following_error, snapshot_ahead_error, snapshot_older_error,
};
use tidegate_store::log::{Batch, Lsn};

pub(crate) use tidegate_store::checks::{check_partition_count, check_snapshot_parts, check_unique_names};

/// The largest number that SQLite stores; a seq above it would not sort.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// Checks that the seqs of new operations grow and fit, and that nothing is drained from an outbox
/// that does not exist.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    tidegate_store::checks::check_nothing_drained(batch)?;
    tidegate_store::checks::check_cost_count(batch)?;
    tidegate_store::checks::check_attempts(batch)?;
    tidegate_store::checks::check_seqs(batch, SEQ_MAX)
}

/// The error for a new operation whose seq is already in use.
pub(crate) fn seq_taken(seq: Seq) -> tidegate_store::Error {
    invalid_error(format!("operation {} already exists: a seq is used once", seq.0))
}

/// Checks that an append directly follows the last one.
pub(crate) fn follows(batch: &Batch, last: Lsn) -> Result<()> {
    match batch.follows {
        Some(follows) if follows != last => Err(not_following_error(follows, last)),
        _ => Ok(()),
    }
}

/// Checks that a snapshot covers the log up to an existing append, and replaces no later snapshot.
pub(crate) fn snapshot_fits(upto: Lsn, last: Lsn, newest: Lsn) -> Result<()> {
    if upto > last {
        return Err(snapshot_ahead_error(upto, last));
    }
    if upto < newest { Err(snapshot_older_error(upto, newest)) } else { Ok(()) }
}
