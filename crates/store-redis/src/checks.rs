//! Checks of a call before the server is asked.

use tidegate_core::Seq;
use tidegate_core::shared::bucket::ReservationRequest;
use tidegate_store::checks::invalid_error;
use tidegate_store::log::Batch;
use tidegate_store::{Error, Result};

pub(crate) use tidegate_store::checks::{
    check_partition_count, check_snapshot_parts, check_unique_names, not_following_error,
    snapshot_ahead_error, snapshot_older_error,
};

use crate::keys::family;

/// The largest seq: above it the scores of a sorted set are not exact.
const SEQ_MAX: Seq = Seq((1 << 53) - 1);

/// Checks that buckets share a slot: on a cluster one step touches one slot.
pub(crate) fn one_family(wanted: &[ReservationRequest]) -> Result<()> {
    let Some(first) = wanted.first() else { return Ok(()) };
    match wanted.iter().find(|want| family(&want.name) != family(&first.name)) {
        Some(other) => Err(invalid_error(format!(
            "the buckets {} and {} cannot be reserved together on a Redis Cluster: their names must be the same up \
             to the first slash",
            first.name, other.name
        ))),
        None => Ok(()),
    }
}

/// Checks that the seqs of new operations grow and fit, and that nothing is drained from an outbox
/// that does not exist.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    tidegate_store::checks::check_nothing_drained(batch)?;
    tidegate_store::checks::check_cost_count(batch)?;
    tidegate_store::checks::check_attempts(batch)?;
    tidegate_store::checks::check_seqs(batch, SEQ_MAX)
}

/// Limits a seq to the range of scores.
pub(crate) fn within_scores(seq: Seq) -> Seq {
    seq.min(SEQ_MAX)
}

/// The error for a new operation whose seq is already in use.
pub(crate) fn seq_taken(first: Seq, newest: &str) -> Error {
    invalid_error(format!("operation {} comes after operation {newest}: a seq is used once", first.0))
}
