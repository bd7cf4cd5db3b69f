//! What a call must be before the store looks at anything: calls that make no sense are refused here, in the same
//! words by both stores.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_core::shared::bucket::Reserve;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Error, Kind, Result, codec};

/// A store has at least one partition.
pub(crate) fn some_partitions(wanted: Partition) -> Result<()> {
    if wanted == 0 {
        return Err(Error::new(Kind::Invalid, "a store has at least one partition"));
    }
    Ok(())
}

/// The largest number SQLite keeps; a seq above it would not sort.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// A bucket that is named twice would be taken from as if it were two.
pub(crate) fn named_once(wanted: &[Reserve]) -> Result<()> {
    for (place, want) in wanted.iter().enumerate() {
        if wanted[..place].iter().any(|earlier| earlier.name == want.name) {
            return Err(invalid(format!("the bucket {} is named twice", want.name)));
        }
    }
    Ok(())
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
        Some(seq) if seq > SEQ_MAX => Err(invalid(format!("the seq {} is too large", seq.0))),
        _ => Ok(()),
    }
}

/// A new operation whose seq is in use already.
pub(crate) fn seq_taken(seq: Seq) -> Error {
    invalid(format!("operation {} is there already: a seq is used once", seq.0))
}

/// An append that follows one that did not stand does not stand either.
pub(crate) fn follows(batch: &Batch, last: Lsn) -> Result<()> {
    match batch.follows {
        Some(follows) if follows != last => {
            let message = format!(
                "append {} does not stand, so the one after it was not written; the last append is {}",
                follows.0, last.0
            );
            Err(Error::new(Kind::Unavailable, message))
        }
        _ => Ok(()),
    }
}

/// A snapshot says what the log says up to an append that exists, and replaces no later one.
pub(crate) fn snapshot_fits(upto: Lsn, last: Lsn, newest: Lsn) -> Result<()> {
    if upto > last {
        let message = format!("a snapshot up to append {} is ahead of the last append, {}", upto.0, last.0);
        return Err(invalid(message));
    }
    if upto < newest {
        let message = format!("a snapshot up to append {} is older than the one up to {}", upto.0, newest.0);
        return Err(invalid(message));
    }
    Ok(())
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

fn invalid(message: String) -> Error {
    Error::new(Kind::Invalid, message)
}
