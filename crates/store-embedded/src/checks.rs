//! What a call must be before the store looks at anything: what every store asks for, and what these two know at once
//! because the log is theirs alone.

use tidegate_core::Seq;
use tidegate_store::Result;
use tidegate_store::checks::{does_not_follow, invalid, snapshot_ahead, snapshot_older};
use tidegate_store::log::{Batch, Lsn};

pub(crate) use tidegate_store::checks::{named_once, parts_are_readable, some_partitions};

/// The largest number SQLite keeps; a seq above it would not sort.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// The seqs of new operations grow, and fit; and nothing comes out of an outbox that is not there.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    tidegate_store::checks::no_outbox(batch)?;
    tidegate_store::checks::costs_fit(batch)?;
    tidegate_store::checks::seqs_grow(batch, SEQ_MAX)
}

/// A new operation whose seq is in use already.
pub(crate) fn seq_taken(seq: Seq) -> tidegate_store::Error {
    invalid(format!("operation {} is there already: a seq is used once", seq.0))
}

/// An append stands only on the one it follows.
pub(crate) fn follows(batch: &Batch, last: Lsn) -> Result<()> {
    match batch.follows {
        Some(follows) if follows != last => Err(does_not_follow(follows, last)),
        _ => Ok(()),
    }
}

/// A snapshot says what the log says up to an append that exists, and replaces no later one.
pub(crate) fn snapshot_fits(upto: Lsn, last: Lsn, newest: Lsn) -> Result<()> {
    if upto > last {
        return Err(snapshot_ahead(upto, last));
    }
    if upto < newest { Err(snapshot_older(upto, newest)) } else { Ok(()) }
}
