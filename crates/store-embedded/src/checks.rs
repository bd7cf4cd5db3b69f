//! What a call must be before the store looks at anything: what every store asks for, and what these two know at once
//! because the log is theirs alone.

use tidegate_core::Seq;
use tidegate_store::Result;
use tidegate_store::checks::{
    invalid_error, not_following_error, snapshot_ahead_error, snapshot_older_error,
};
use tidegate_store::log::{Batch, Lsn};

pub(crate) use tidegate_store::checks::{check_partition_count, check_snapshot_parts, check_unique_names};

/// The largest number SQLite keeps; a seq above it would not sort.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// The seqs of new operations grow, and fit; and nothing comes out of an outbox that is not there.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    tidegate_store::checks::check_nothing_drained(batch)?;
    tidegate_store::checks::check_cost_count(batch)?;
    tidegate_store::checks::check_seqs(batch, SEQ_MAX)
}

/// A new operation whose seq is in use already.
pub(crate) fn seq_taken(seq: Seq) -> tidegate_store::Error {
    invalid_error(format!("operation {} is there already: a seq is used once", seq.0))
}

/// An append stands only on the one it follows.
pub(crate) fn follows(batch: &Batch, last: Lsn) -> Result<()> {
    match batch.follows {
        Some(follows) if follows != last => Err(not_following_error(follows, last)),
        _ => Ok(()),
    }
}

/// A snapshot says what the log says up to an append that exists, and replaces no later one.
pub(crate) fn snapshot_fits(upto: Lsn, last: Lsn, newest: Lsn) -> Result<()> {
    if upto > last {
        return Err(snapshot_ahead_error(upto, last));
    }
    if upto < newest { Err(snapshot_older_error(upto, newest)) } else { Ok(()) }
}
