//! The cursor of a list over all partitions: a position in each of them, with a checksum over them
//! and the filter. A cursor that was made up or belongs to another list is refused.

use std::fmt::Write;

use tidegate_core::Seq;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::id::Partition;

use crate::error::{Error, ErrorCode, Result};

const SUM_LEN: usize = 16;

/// The position in the list of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionCursor {
    /// At the newest operation.
    Start,
    /// Below this operation.
    Below(Seq),
    /// After the last operation.
    End,
}

pub(super) fn write(places: &[PartitionCursor], filter: &str) -> String {
    let mut text = String::new();
    for place in places {
        match place {
            PartitionCursor::Start => text.push('s'),
            // Writing to a string cannot fail.
            PartitionCursor::Below(seq) => drop(write!(text, "{:x}.", seq.0)),
            PartitionCursor::End => text.push('z'),
        }
    }
    let sum = sum(&text, filter);
    text + &sum
}

/// # Errors
/// `BadCursor` if no node issued it for this list.
pub(super) fn read(text: &str, filter: &str, partitions: Partition) -> Result<Vec<PartitionCursor>> {
    let places = text
        .len()
        .checked_sub(SUM_LEN)
        .and_then(|end| text.split_at_checked(end))
        .filter(|(places, given)| sum(places, filter) == *given)
        .and_then(|(places, _)| parse(places))
        .filter(|places| places.len() == usize::from(partitions));
    places.ok_or_else(|| {
        let message = "This cursor was not issued for this list; start again without one.";
        Error::new(ErrorCode::BadCursor, message).field("cursor")
    })
}

fn parse(mut text: &str) -> Option<Vec<PartitionCursor>> {
    let mut places = Vec::new();
    while !text.is_empty() {
        let (place, rest) = if let Some(rest) = text.strip_prefix('s') {
            (PartitionCursor::Start, rest)
        } else if let Some(rest) = text.strip_prefix('z') {
            (PartitionCursor::End, rest)
        } else {
            let (seq, rest) = text.split_once('.')?;
            (PartitionCursor::Below(Seq(u64::from_str_radix(seq, 16).ok()?)), rest)
        };
        places.push(place);
        text = rest;
    }
    Some(places)
}

fn sum(places: &str, filter: &str) -> String {
    let sum = Fingerprint::of("cursor over partitions").part(places.as_bytes()).part(filter.as_bytes());
    hex(&sum.finish()[..SUM_LEN / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cursor_of_the_same_list_is_taken() {
        let places = [
            PartitionCursor::Start,
            PartitionCursor::Below(Seq(0x1f)),
            PartitionCursor::End,
            PartitionCursor::Below(Seq(u64::MAX)),
        ];
        let cursor = write(&places, "state=failed");
        assert_eq!(read(&cursor, "state=failed", 4), Ok(places.to_vec()));
        assert!(read(&cursor, "state=queued", 4).is_err());
        assert!(read(&cursor, "state=failed", 5).is_err());
        for text in ["", "s", &cursor[1..], &cursor.replace('1', "2"), "é".repeat(9).as_str()] {
            assert_eq!(
                read(text, "state=failed", 4).map_err(|error| error.code),
                Err(ErrorCode::BadCursor),
                "{text}"
            );
        }
    }
}
