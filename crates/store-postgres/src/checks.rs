//! What a call must be before the server is asked: calls that make no sense are refused here.

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::shared::bucket::Reserve;
use tidegate_store::log::{Batch, Lsn, Ownership};
use tidegate_store::{Error, Kind, Result, codec};

/// The largest number that a bigint sorts rightly.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// A bucket that is named twice would be taken from as if it were two.
pub(crate) fn named_once(wanted: &[Reserve]) -> Result<()> {
    let mut names: Vec<&str> = wanted.iter().map(|want| want.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(invalid(format!("the bucket {} is named twice", pair[0]))),
        None => Ok(()),
    }
}

/// PostgreSQL keeps no text with a zero byte in it.
pub(crate) fn name_can_be_kept(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(invalid("PostgreSQL keeps no name with a zero byte in it".into()));
    }
    Ok(())
}

/// The seqs of new operations grow and fit, and every name can be kept.
pub(crate) fn batch(batch: &Batch) -> Result<()> {
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
        Some(seq) if seq > SEQ_MAX => return Err(invalid(format!("the seq {} is too large", seq.0))),
        _ => {}
    }
    for operation in &batch.operations {
        name_can_be_kept(&operation.group)?;
        name_can_be_kept(&operation.kind)?;
        name_can_be_kept(operation.key.as_deref().unwrap_or_default())?;
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

/// What the server's steps answer instead of doing something.
pub(crate) fn refusal(owner: Ownership, verdict: &str, number: i64) -> Error {
    let (partition, epoch, number) = (owner.partition, owner.epoch.0, number.cast_unsigned());
    match verdict {
        "fenced" => Error::new(
            Kind::Fenced,
            format!(
                "epoch {epoch} of partition {partition} has ended (a newer owner exists; the newest is {number})"
            ),
        ),
        "released" => Error::new(
            Kind::Fenced,
            format!(
                "epoch {epoch} of partition {partition} has ended (it was released; the newest is {number})"
            ),
        ),
        _ => Error::new(Kind::Unreadable, format!("partition {partition} was answered with {verdict:?}")),
    }
}

/// An append that follows one that did not stand does not stand either.
pub(crate) fn does_not_follow(follows: Option<Lsn>, last: i64) -> Error {
    let message = format!(
        "append {} does not stand, so the one after it was not written; the last append is {}",
        follows.unwrap_or_default().0,
        last.cast_unsigned()
    );
    Error::new(Kind::Unavailable, message)
}

/// A snapshot says what the log says up to an append that exists, and replaces no later one.
pub(crate) fn snapshot_refusal(owner: Ownership, upto: Lsn, verdict: &str, number: i64) -> Error {
    match verdict {
        "ahead" => {
            invalid(format!("a snapshot up to append {} is ahead of the last append, {number}", upto.0))
        }
        "older" => {
            invalid(format!("a snapshot up to append {} is older than the one up to {number}", upto.0))
        }
        _ => refusal(owner, verdict, number),
    }
}

pub(crate) fn invalid(message: String) -> Error {
    Error::new(Kind::Invalid, message)
}
