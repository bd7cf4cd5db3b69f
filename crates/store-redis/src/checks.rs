//! What a call must be before the server is asked anything.

use tidegate_core::Seq;
use tidegate_core::shared::bucket::Reserve;
use tidegate_store::checks::invalid;
use tidegate_store::log::Batch;
use tidegate_store::{Error, Result};

pub(crate) use tidegate_store::checks::{
    does_not_follow, named_once, parts_are_readable, snapshot_ahead, snapshot_older, some_partitions,
};

use crate::keys::family;

/// The largest seq: above it the scores of a sorted set are not exact.
const SEQ_MAX: Seq = Seq((1 << 53) - 1);

/// On a cluster one step touches one slot.
pub(crate) fn one_family(wanted: &[Reserve]) -> Result<()> {
    let Some(first) = wanted.first() else { return Ok(()) };
    match wanted.iter().find(|want| family(&want.name) != family(&first.name)) {
        Some(other) => Err(invalid(format!(
            "the buckets {} and {} cannot be reserved together on a Redis Cluster: their names must be the same up \
             to the first slash",
            first.name, other.name
        ))),
        None => Ok(()),
    }
}

/// The seqs of new operations grow, and fit; and nothing comes out of an outbox that is not there.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
    tidegate_store::checks::no_outbox(batch)?;
    tidegate_store::checks::costs_fit(batch)?;
    tidegate_store::checks::seqs_grow(batch, SEQ_MAX)
}

/// The newest seq, as far as scores go.
pub(crate) fn within_scores(seq: Seq) -> Seq {
    seq.min(SEQ_MAX)
}

/// A new operation whose seq is in use already.
pub(crate) fn seq_taken(first: Seq, newest: &str) -> Error {
    invalid(format!("operation {} comes after operation {newest}: a seq is used once", first.0))
}
