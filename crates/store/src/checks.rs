//! What a call must be before a backend looks at anything, and the words in which all of them refuse: a caller must not
//! have to know which one it talks to.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::bounds::COSTS_MAX;
use tidegate_core::id::Partition;
use tidegate_core::shared::bucket::Reserve;

use crate::log::{Batch, Lsn};
use crate::{Error, Kind, Result, codec};

/// A store has at least one partition.
///
/// # Errors
/// `Invalid` for none.
pub fn some_partitions(wanted: Partition) -> Result<()> {
    if wanted == 0 { Err(invalid("a store has at least one partition")) } else { Ok(()) }
}

/// A bucket that is named twice would be taken from as if it were two.
///
/// # Errors
/// `Invalid`, with its name.
pub fn named_once(wanted: &[Reserve]) -> Result<()> {
    for (place, want) in wanted.iter().enumerate() {
        if wanted[..place].iter().any(|earlier| earlier.name == want.name) {
            return Err(invalid(format!("the bucket {} is named twice", want.name)));
        }
    }
    Ok(())
}

/// The seqs of new operations grow, and none is larger than the backend can keep in order.
///
/// # Errors
/// `Invalid`, with the seq.
pub fn seqs_grow(batch: &Batch, largest: Seq) -> Result<()> {
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
        Some(seq) if seq > largest => {
            Err(invalid(format!("the seq {} is too large; the largest is {}", seq.0, largest.0)))
        }
        _ => Ok(()),
    }
}

/// One append keeps a bounded number of costs.
///
/// # Errors
/// `Invalid`, with how many there are.
pub fn costs_fit(batch: &Batch) -> Result<()> {
    match batch.costs.len() {
        some if some <= COSTS_MAX => Ok(()),
        many => Err(invalid(format!("an append keeps at most {COSTS_MAX} costs; these are {many}"))),
    }
}

/// What comes out of an outbox comes out of one that is there.
///
/// # Errors
/// `Invalid`, with the number of rows.
pub fn no_outbox(batch: &Batch) -> Result<()> {
    match batch.drained.len() {
        0 => Ok(()),
        rows => Err(invalid(format!("this store has no outbox to take {rows} rows out of"))),
    }
}

/// A snapshot replaces the log, so what could not be read back is not taken.
///
/// # Errors
/// `Invalid`, with the part.
pub fn parts_are_readable(parts: &[Bytes]) -> Result<()> {
    for (place, part) in parts.iter().enumerate() {
        codec::decode(part).map_err(|cause| {
            invalid(format!("part {} of the snapshot cannot be read back", place + 1)).because(cause)
        })?;
    }
    Ok(())
}

/// An append that follows one that did not stand does not stand either.
#[must_use]
pub fn does_not_follow(follows: Lsn, last: Lsn) -> Error {
    let message = format!(
        "append {} does not stand, so the one after it was not written; the last append is {}",
        follows.0, last.0
    );
    Error::new(Kind::Unavailable, message)
}

/// A snapshot that goes further than the log.
#[must_use]
pub fn snapshot_ahead(upto: Lsn, last: Lsn) -> Error {
    invalid(format!("a snapshot up to append {} is ahead of the last append, {}", upto.0, last.0))
}

/// A snapshot that says less than the one that is there.
#[must_use]
pub fn snapshot_older(upto: Lsn, newest: Lsn) -> Error {
    invalid(format!("a snapshot up to append {} is older than the one up to {}", upto.0, newest.0))
}

/// A call that makes no sense.
#[must_use]
pub fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::Invalid, message)
}
