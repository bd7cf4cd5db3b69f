//! Row checksums, which verify that what is read is what was written. Each row has one number: half
//! of it covers the columns, and half covers the payload bytes, which lists do not read. SQLite
//! itself checks no page of its file.

use crc32fast::Hasher;

/// The value of a row from before there were checksums. It is unlike anything that a damaged page
/// holds: a page that was wiped has zeros or ones.
pub(super) const NONE: i64 = 0x6e6f_2073_756d_2121;

/// The bytes of columns that are hashed together: hashing a few at a time costs several times more.
const PENDING_MAX: usize = 192;

/// A row checksum under construction.
#[derive(Clone, Debug)]
pub(super) struct RowChecksum {
    hasher: Hasher,
    /// The columns that are not hashed yet, and how many bytes they have.
    pending: [u8; PENDING_MAX],
    len: usize,
}

impl RowChecksum {
    /// Starts the checksum of a row of this table.
    pub(super) fn of(table: &str) -> Self {
        Self { hasher: Hasher::new(), pending: [0; PENDING_MAX], len: 0 }.text(table)
    }

    fn update(&mut self, bytes: &[u8]) {
        if self.len + bytes.len() > PENDING_MAX {
            self.hasher.update(&self.pending[..self.len]);
            self.len = 0;
        }
        match self.pending.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.hasher.update(bytes),
        }
    }

    pub(super) fn number(mut self, number: i64) -> Self {
        self.update(&number.to_le_bytes());
        self
    }

    pub(super) fn maybe_number(self, number: Option<i64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut sum = self.number(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        sum.update(bytes);
        sum
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn maybe_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    /// The stored value, including the payload bytes of the row.
    pub(super) fn finish(mut self, carried: &[u8]) -> i64 {
        self.hasher.update(&self.pending[..self.len]);
        let halves = u64::from(self.hasher.finalize()) << 32 | u64::from(crc32fast::hash(carried));
        let sum = halves.cast_signed();
        if sum == NONE { !NONE } else { sum }
    }

    /// Returns whether a row has this checksum, including its payload where that was read. A row
    /// from before there were checksums always matches.
    pub(super) fn matches(self, found: i64, carried: Option<&[u8]>) -> bool {
        let mask = if carried.is_some() { u64::MAX } else { u64::MAX << 32 };
        let expected = self.finish(carried.unwrap_or_default());
        found == NONE || (found ^ expected).cast_unsigned() & mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the columns are put together, the checksum is that of their bytes.
    #[test]
    fn long_columns_are_hashed_like_short_ones() {
        for len in [0, 1, PENDING_MAX - 9, PENDING_MAX - 8, PENDING_MAX, PENDING_MAX + 1, 1_000] {
            let column = vec![7; len];
            let sum = RowChecksum::of("t").bytes(&column).number(5).finish(b"");
            let mut whole = Vec::from(1_i64.to_le_bytes());
            whole.extend_from_slice(b"t");
            whole.extend_from_slice(&i64::try_from(len).unwrap().to_le_bytes());
            whole.extend_from_slice(&column);
            whole.extend_from_slice(&5_i64.to_le_bytes());
            let expected = u64::from(crc32fast::hash(&whole)) << 32 | u64::from(crc32fast::hash(b""));
            assert_eq!(sum.cast_unsigned(), expected, "{len}");
        }
    }

    #[test]
    fn a_changed_row_does_not_match() {
        let row = |name: &str, number| RowChecksum::of("t").text(name).number(number).maybe_text(None);
        let kept = row("a", 7).finish(b"body");
        assert!(row("a", 7).matches(kept, Some(b"body")) && row("a", 7).matches(kept, None));
        assert!(!row("a", 8).matches(kept, None) && !row("b", 7).matches(kept, None));
        assert!(!row("a", 7).matches(kept, Some(b"bodY")) && !row("a", 7).matches(kept ^ 1, Some(b"body")));
        assert!(row("a", 7).matches(NONE, Some(b"anything")), "written before there were checksums");
        for wiped in [0, -1] {
            assert!(!row("a", 7).matches(wiped, Some(b"anything")) && !row("a", 7).matches(wiped, None));
        }
        assert_ne!(
            RowChecksum::of("t").text("ab").text("c").finish(b""),
            RowChecksum::of("t").text("a").text("bc").finish(b"")
        );
    }
}
