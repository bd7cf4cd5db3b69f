//! Identifiers: the sequence number of an operation in its partition, the public id that embeds it,
//! fences and turns. The public id sorts by time and can be looked up without an index.

use std::fmt;
use std::str::FromStr;

use crate::time::Time;

/// Position of an operation in the order of acceptance of its partition. Starts at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// Increases with every claim of a partition; a settlement with an old fence changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// Decides which group goes first: lower goes earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), derive(PartialOrd, Ord))]
pub struct Turn(pub u64);

/// The number of a partition inside one store.
pub type Partition = u16;

const PREFIX: &str = "op_";
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LEN: usize = 26;
/// The last digits, which hold a sequence number and nothing else.
const SEQ_DIGITS: usize = 12;

/// The public id of an operation: `op_` and 26 base-32 digits over milliseconds, partition and
/// sequence number, so ids sort by time of acceptance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    millis: u64,
    partition: Partition,
    seq: Seq,
}

impl OperationId {
    /// Creates the id of the operation accepted at `at` as `seq` of `partition`.
    #[must_use]
    pub const fn new(at: Time, partition: Partition, seq: Seq) -> Self {
        Self { millis: at.as_millis() & 0xffff_ffff_ffff, partition, seq }
    }

    /// When it was accepted, in whole milliseconds.
    #[must_use]
    pub const fn accepted_at_millis(self) -> u64 {
        self.millis
    }

    /// Its partition.
    #[must_use]
    pub const fn partition(self) -> Partition {
        self.partition
    }

    /// Its sequence number in the partition.
    #[must_use]
    pub const fn seq(self) -> Seq {
        self.seq
    }

    fn bits(self) -> u128 {
        (u128::from(self.millis) << 80) | (u128::from(self.partition) << 64) | u128::from(self.seq.0)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written at once: every call has its id as text.
        let mut text = [0; PREFIX.len() + LEN];
        let (prefix, digits) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        let mut bits = self.bits();
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[bits as usize & 31];
            bits >>= 5;
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Parses the last digits of an id as people copy them, and returns the sequence number that they
/// end with; `None` for any other text.
#[must_use]
pub fn parse_seq_end(digits: &str) -> Option<Seq> {
    if !(1..=LEN).contains(&digits.len()) {
        return None;
    }
    let digits = digits.bytes().map(|digit| DIGITS.iter().position(|known| *known == digit));
    let digits: Option<Vec<usize>> = digits.collect();
    let in_seq = digits?.into_iter().rev().take(SEQ_DIGITS).rev();
    Some(Seq(in_seq.fold(0, |seq, digit| (seq << 5) | digit as u64)))
}

/// The last digits of the id of an operation: those that depend on its sequence number alone.
#[must_use]
pub fn seq_end(seq: Seq) -> String {
    let id = OperationId { millis: 0, partition: 0, seq }.to_string();
    id[id.len() - SEQ_DIGITS..].to_owned()
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of parsing a text that is not an operation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseOperationIdError;

impl fmt::Display for ParseOperationIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation id is op_ and 26 lower-case digits and letters")
    }
}

impl std::error::Error for ParseOperationIdError {}

impl FromStr for OperationId {
    type Err = ParseOperationIdError;

    fn from_str(text: &str) -> Result<Self, ParseOperationIdError> {
        let digits = text.strip_prefix(PREFIX).ok_or(ParseOperationIdError)?.as_bytes();
        if digits.len() != LEN || digits[0] > b'7' {
            return Err(ParseOperationIdError);
        }
        let mut bits = 0_u128;
        for digit in digits {
            let value = DIGITS.iter().position(|d| d == digit).ok_or(ParseOperationIdError)?;
            bits = (bits << 5) | value as u128;
        }
        Ok(Self { millis: (bits >> 80) as u64, partition: (bits >> 64) as Partition, seq: Seq(bits as u64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// OPS-1: ids are unique, sort by time, and parse back to their parts.
        #[test]
        fn ids_round_trip_and_sort_by_time(
            a in (0_u64..1 << 48, any::<u16>(), any::<u64>()),
            b in (0_u64..1 << 48, any::<u16>(), any::<u64>()),
        ) {
            let id = |(ms, part, seq)| OperationId::new(Time::from_millis(ms), part, Seq(seq));
            prop_assert_eq!(id(a).to_string().parse::<OperationId>(), Ok(id(a)));
            prop_assert_eq!(a.cmp(&b), id(a).to_string().cmp(&id(b).to_string()));
        }

        #[test]
        fn the_end_of_an_id_has_its_sequence_number(ms in 0_u64..1 << 48, part in any::<u16>(), seq in 0_u64..1 << 60, len in 12_usize..=26) {
            let text = OperationId::new(Time::from_millis(ms), part, Seq(seq)).to_string();
            prop_assert_eq!(parse_seq_end(&text[text.len() - len..]), Some(Seq(seq)));
            prop_assert!(text.ends_with(&seq_end(Seq(seq))));
            prop_assert_eq!(parse_seq_end(&text), None);
        }

        #[test]
        fn any_text_is_an_id_or_refused(text in "\\PC*") {
            if let Ok(id) = text.parse::<OperationId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
