//! What a call must be before the server is asked anything.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_core::shared::bucket::Reserve;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Error, Kind, Result, codec};

use crate::keys::family;

/// The largest seq: above it the scores of a sorted set are not exact.
const SEQ_MAX: Seq = Seq((1 << 53) - 1);

/// There is at least one partition.
pub(crate) fn some_partitions(wanted: Partition) -> Result<()> {
    if wanted == 0 { Err(invalid("a store has at least one partition".into())) } else { Ok(()) }
}

/// A bucket that is named twice would be taken from as if it were two.
pub(crate) fn named_once(wanted: &[Reserve]) -> Result<()> {
    for (place, want) in wanted.iter().enumerate() {
        if wanted[..place].iter().any(|earlier| earlier.name == want.name) {
            return Err(invalid(format!("the bucket {} is named twice", want.name)));
        }
    }
    Ok(())
}

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

/// The seqs of new operations grow, and fit.
pub(crate) fn seqs_grow(batch: &Batch) -> Result<()> {
    for pair in batch.operations.windows(2) {
        if pair[0].seq >= pair[1].seq {
            let (earlier, later) = (pair[0].seq.0, pair[1].seq.0);
            return Err(invalid(format!(
                "operation {later} comes after operation {earlier}: seqs must grow"
            )));
        }
    }
    let results = batch.results.iter().map(|result| result.seq);
    let last = batch.operations.last().map(|operation| operation.seq);
    match results.chain(last).chain(batch.reopened.iter().copied()).max() {
        Some(seq) if seq > SEQ_MAX => {
            Err(invalid(format!("the seq {} is too large; the largest is {}", seq.0, SEQ_MAX.0)))
        }
        _ => Ok(()),
    }
}

/// The newest seq, as far as scores go.
pub(crate) fn within_scores(seq: Seq) -> Seq {
    seq.min(SEQ_MAX)
}

/// A snapshot replaces the log, so what could not be read back is not taken.
pub(crate) fn parts_are_readable(parts: &[Bytes]) -> Result<()> {
    for (place, part) in parts.iter().enumerate() {
        codec::decode(part).map_err(|cause| {
            invalid(format!("part {} of the snapshot cannot be read back", place + 1)).because(cause)
        })?;
    }
    Ok(())
}

/// A snapshot that goes further than the log.
pub(crate) fn snapshot_ahead(upto: Lsn, last: &str) -> Error {
    invalid(format!("a snapshot up to append {} is ahead of the last append, {last}", upto.0))
}

/// A snapshot that says less than the one that is there.
pub(crate) fn snapshot_older(upto: Lsn, newest: &str) -> Error {
    invalid(format!("a snapshot up to append {} is older than the one up to {newest}", upto.0))
}

/// A new operation whose seq is in use already.
pub(crate) fn seq_taken(first: Seq, newest: &str) -> Error {
    invalid(format!("operation {} comes after operation {newest}: a seq is used once", first.0))
}

fn invalid(message: String) -> Error {
    Error::new(Kind::Invalid, message)
}
