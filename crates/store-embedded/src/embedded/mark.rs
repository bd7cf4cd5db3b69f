//! The mark: a small file that records how far its partition is known to be durable. It is written
//! after a sync of the data it describes, without a sync of its own, so it costs an append next to
//! nothing and never claims too much. After a power loss the mark on disk may be older; after the
//! process was killed it is exact. A write-ahead log or a SQLite file that ends before the mark is
//! damaged, and is not taken for one whose last write was torn.
//!
//! Each of the two writers has two slots and alternates between them, so a torn slot leaves the one
//! before it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::log::Lsn;

use super::lock::unusable;

/// Turn, three numbers, and their checksum.
const SLOT_LEN: usize = 4 * 8 + 4;
/// The distance between two slots: no two share a disk sector.
const STRIDE: u64 = 512;
const FILE_LEN: usize = 4 * STRIDE as usize;

/// The writers and their slots.
#[derive(Clone, Copy, Debug)]
enum MarkWriter {
    Wal = 0,
    Sqlite = 2,
}

/// How far the write-ahead log is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalMark {
    /// The last append.
    pub(super) last: Lsn,
    /// The last operation that was accepted in it or before it.
    pub(super) last_seq: Seq,
}

/// The slots that one thread writes.
#[derive(Debug)]
pub(super) struct MarkSlots {
    file: File,
    writer: MarkWriter,
    turn: u64,
}

/// The contents of a mark file, and the means to write it.
pub(super) struct MarkFile {
    pub(super) path: PathBuf,
    pub(super) wal: (WalMark, MarkSlots),
    /// The number of commits that only SQLite has: records, leases, the journal.
    pub(super) sqlite: (u64, MarkSlots),
}

impl MarkFile {
    /// Opens a partition's mark, creating it if it does not exist. An unreadable mark claims
    /// nothing.
    pub(super) fn open(dir: &Path, partition: Partition) -> Result<Self> {
        let path = path_of(dir, partition);
        Self::at(&path).map_err(|cause| unusable(&path, cause))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if bytes.len() < FILE_LEN {
            file.write_all(&vec![0; FILE_LEN - bytes.len()])?;
            file.sync_all()?;
        }
        let slots = |writer: MarkWriter| {
            let slots = [0, 1].map(|nth| slot(&bytes, writer as u64 + nth));
            slots.into_iter().flatten().max().unwrap_or_default()
        };
        let (front, sqlite) = (slots(MarkWriter::Wal), slots(MarkWriter::Sqlite));
        let known = WalMark { last: Lsn(front[1]), last_seq: Seq(front[2]) };
        let of_sqlite = MarkSlots { file: options.open(path)?, writer: MarkWriter::Sqlite, turn: sqlite[0] };
        Ok(Self {
            path: path.to_owned(),
            wal: (known, MarkSlots { file, writer: MarkWriter::Wal, turn: front[0] }),
            sqlite: (sqlite[1], of_sqlite),
        })
    }
}

impl MarkSlots {
    /// Notes that the write-ahead log is durable up to here.
    pub(super) fn note_wal(&mut self, WalMark { last, last_seq }: WalMark) {
        self.note([last.0, last_seq.0]);
    }

    /// Notes that this many of SQLite's own commits are durable.
    pub(super) fn note_commits(&mut self, commits: u64) {
        self.note([commits, 0]);
    }

    /// Writes the next slot. A mark that cannot be written falls behind, and still claims nothing
    /// false.
    fn note(&mut self, numbers: [u64; 2]) {
        self.turn += 1;
        let mut slot = Vec::with_capacity(SLOT_LEN);
        for number in [self.turn, numbers[0], numbers[1], self.writer as u64] {
            slot.extend_from_slice(&number.to_le_bytes());
        }
        slot.extend_from_slice(&crc32fast::hash(&slot).to_le_bytes());
        let at = (self.writer as u64 + self.turn % 2) * STRIDE;
        let _ = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(&slot));
    }

    /// Syncs the mark, when there is time.
    pub(super) fn sync(&self) {
        let _ = self.file.sync_data();
    }
}

/// The path of a partition's mark.
fn path_of(dir: &Path, partition: Partition) -> PathBuf {
    dir.join(format!("p{partition}.mark"))
}

/// The turn and the numbers of a slot whose checksum matches.
fn slot(bytes: &[u8], nth: u64) -> Option<[u64; 3]> {
    let at = usize::try_from(nth * STRIDE).ok()?;
    let (numbers, sum) = bytes.get(at..at + SLOT_LEN)?.split_at(SLOT_LEN - 4);
    if sum != crc32fast::hash(numbers).to_le_bytes() {
        return None;
    }
    let number = |nth: usize| numbers.get(nth * 8..)?.first_chunk().map(|number| u64::from_le_bytes(*number));
    Some([number(0)?, number(1)?, number(2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(marks: &MarkFile) -> (u64, u64, u64) {
        (marks.wal.0.last.0, marks.wal.0.last_seq.0, marks.sqlite.0)
    }

    #[test]
    fn the_newest_slot_counts_and_a_damaged_one_leaves_the_one_before_it() {
        let dir = std::env::temp_dir().join(format!("tidegate-mark-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut marks = MarkFile::open(&dir, 3).unwrap();
        assert_eq!(noted(&marks), (0, 0, 0), "a new one says nothing");
        for last in 1..=7 {
            marks.wal.1.note_wal(WalMark { last: Lsn(last), last_seq: Seq(last * 10) });
            marks.sqlite.1.note_commits(last * 100);
        }
        let again = MarkFile::open(&dir, 3).unwrap();
        assert_eq!(noted(&again), (7, 70, 700));
        let mut bytes = std::fs::read(&again.path).unwrap();
        // The seventh turn went to the second slot.
        bytes[STRIDE as usize + 9] ^= 1;
        std::fs::write(&again.path, &bytes).unwrap();
        assert_eq!(noted(&MarkFile::open(&dir, 3).unwrap()), (6, 60, 700));
        std::fs::write(&again.path, [7; 99]).unwrap();
        assert_eq!(noted(&MarkFile::open(&dir, 3).unwrap()), (0, 0, 0), "what cannot be read says nothing");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
