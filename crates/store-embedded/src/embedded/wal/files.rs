//! The files of the write-ahead log: appends one after the other, in files named by their first
//! append. Space is zeroed before it is used, and a file that is completely in SQLite is reused: so
//! syncing an append touches nothing but its own bytes, and never waits for other data on its way
//! to the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::id::Partition;
use tidegate_store::log::Lsn;
use tidegate_store::{Error, Result, StoreErrorKind};

use super::super::errors::damaged;
use super::super::lock::{sync_names, unusable};
use super::super::mark::WalMark;
use super::super::permissions;
use super::super::tail::PendingAppend;
use super::frame;

/// The size of the first file; each new one has four times the size of the one before it.
const ROOM_MIN: u64 = 256 * 1024;
/// The maximum size of a file.
const ROOM_MAX: u64 = 32 * 1024 * 1024;
/// The zeroes written at once.
static ZEROES: [u8; 64 * 1024] = [0; 64 * 1024];

/// The file that is being written, and those before it.
#[derive(Debug)]
pub(super) struct WalFiles {
    dir: PathBuf,
    partition: Partition,
    file: File,
    /// The offset of the next append.
    end: u64,
    /// How much of the file has been written before, with zeroes or appends.
    room: u64,
    /// Every file with the last append in it, oldest first; the one that is being written comes
    /// last.
    spans: Vec<(PathBuf, Lsn)>,
}

/// The result of opening: the files, and the appends in them that SQLite does not have, in order.
pub(super) type OpenedWal = (WalFiles, Vec<Arc<PendingAppend>>);

impl WalFiles {
    /// Opens the existing files and reads the appends after `after`, up to which SQLite has them.
    pub(super) fn open(dir: &Path, partition: Partition, after: Lsn, known: WalMark) -> Result<OpenedWal> {
        let mut paths = existing(dir, partition)?;
        paths.sort_unstable();
        let (mut appends, mut spans, mut last) = (Vec::new(), Vec::new(), after);
        let (mut end, mut ends_with) = (0, after.0);
        for (first, path) in paths {
            let Contents { found, end: read_to, next } = read(&path, first, after)?;
            (end, ends_with) = (read_to, next - 1);
            for pending in found {
                if pending.lsn.0 != last.0 + 1 {
                    let message = format!("{} is damaged: append {} is missing", path.display(), last.0 + 1);
                    return Err(Error::new(StoreErrorKind::Unreadable, message));
                }
                last = pending.lsn;
                appends.push(Arc::new(pending));
            }
            spans.push((path, last));
        }
        if last < known.last {
            let path =
                spans.last().map_or_else(|| path_of(dir, partition, last.0 + 1), |(path, _)| path.clone());
            return Err(lost_appends_error(&path, end, last, known));
        }
        let (file, room) = match spans.last() {
            Some((path, _)) => reopen(path, end).map_err(|cause| unusable(path, cause))?,
            None => {
                let path = path_of(dir, partition, last.0 + 1);
                let file = create(&path, ROOM_MIN).map_err(|cause| unusable(&path, cause))?;
                spans.push((path, last));
                (file, ROOM_MIN)
            }
        };
        sync_names(dir).map_err(|cause| unusable(dir, cause))?;
        let mut files = Self { dir: dir.to_owned(), partition, file, end, room, spans };
        if ends_with != last.0 {
            // SQLite knows more than this file: new appends must not follow the missing ones in it.
            files.rotate(Lsn(last.0 + 1)).map_err(|cause| unusable(dir, cause))?;
        }
        Ok((files, appends))
    }

    /// Writes the sealed appends from `first` to `last`; they are durable when this returns. An
    /// error tells whether they were certainly not written.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        first: Lsn,
        last: Lsn,
    ) -> std::result::Result<(), (io::Error, bool)> {
        if self.end > 0 && self.end + bytes.len() as u64 > self.room {
            self.rotate(first).map_err(|cause| (cause, true))?;
        }
        if let Err(cause) = self.file.write_all(bytes) {
            let undone = self.file.seek(SeekFrom::Start(self.end)).is_ok();
            return Err((cause, undone));
        }
        self.file.sync_data().map_err(|cause| (cause, false))?;
        self.end += bytes.len() as u64;
        if let Some(span) = self.spans.last_mut() {
            span.1 = last;
        }
        Ok(())
    }

    /// Continues in another file: a recycled one, or a new one.
    fn rotate(&mut self, first: Lsn) -> io::Result<()> {
        let (path, spare) = (path_of(&self.dir, self.partition, first.0), self.spare());
        let room = fs::metadata(&spare).map_or(0, |found| found.len());
        self.file = if room > 0 {
            fs::rename(&spare, &path)?;
            self.room = room;
            OpenOptions::new().write(true).open(&path)?
        } else {
            self.room = (self.room * 4).min(ROOM_MAX);
            create(&path, self.room)?
        };
        sync_names(&self.dir)?;
        self.end = 0;
        self.spans.push((path, Lsn(first.0 - 1)));
        Ok(())
    }

    /// The last append of the files that are no longer written.
    pub(super) fn last_of_full_files(&self) -> Option<Lsn> {
        let closed = &self.spans[..self.spans.len().saturating_sub(1)];
        closed.last().map(|(_, last)| *last)
    }

    /// Releases the files that are no longer written and end at or before `safe`; the largest is
    /// kept for reuse.
    pub(super) fn recycle(&mut self, safe: Lsn) -> io::Result<()> {
        while self.spans.len() > 1 && self.spans[0].1 <= safe {
            let (path, _) = &self.spans[0];
            let kept = fs::metadata(self.spare()).map_or(0, |found| found.len());
            if fs::metadata(path)?.len() > kept {
                fs::rename(path, self.spare())?;
            } else {
                fs::remove_file(path)?;
            }
            self.spans.remove(0);
        }
        Ok(())
    }

    fn spare(&self) -> PathBuf {
        self.dir.join(format!("p{}.spare", self.partition))
    }
}

fn path_of(dir: &Path, partition: Partition, first: u64) -> PathBuf {
    dir.join(format!("p{partition}.front-{first:020}"))
}

fn existing(dir: &Path, partition: Partition) -> Result<Vec<(u64, PathBuf)>> {
    let start = format!("p{partition}.front-");
    let entries = fs::read_dir(dir).map_err(|cause| unusable(dir, cause))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|cause| unusable(dir, cause))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let first = name.and_then(|name| name.strip_prefix(&start)?.parse().ok());
        found.extend(first.map(|first| (first, path.clone())));
    }
    Ok(found)
}

/// The error for acknowledged appends that cannot be read any more.
fn lost_appends_error(path: &Path, end: u64, last: Lsn, known: WalMark) -> Error {
    let what = format!(
        "at byte {end} append {} should follow; the appends from there to {} were acknowledged and cannot be read, with \
         what they accepted up to operation {}",
        last.0 + 1,
        known.last.0,
        known.last_seq.0,
    );
    damaged(path, &what)
}

/// The contents of a file.
struct Contents {
    /// The appends after those that SQLite has.
    found: Vec<PendingAppend>,
    /// The offset of their end.
    end: u64,
    /// The append that would follow.
    next: u64,
}

/// Reads the appends of a file, from `first` on, one after the other. What follows them is torn,
/// left from an earlier use, or unused: none of it was ever acknowledged. Damage in the middle is
/// an error, unless SQLite has everything that it hit: everything up to `after`.
fn read(path: &Path, first: u64, after: Lsn) -> Result<Contents> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|cause| unusable(path, cause))?;
    file.read_to_end(&mut bytes).map_err(|cause| unusable(path, cause))?;
    let mut bytes = Bytes::from(bytes);
    let mut read = Contents { found: Vec::new(), end: 0, next: first };
    loop {
        let len = match frame::decode(&bytes) {
            Some((pending, len)) if pending.lsn.0 == read.next => {
                read.found.extend(Some(pending).filter(|pending| pending.lsn > after));
                len
            }
            // SQLite has it, and its head still tells where the next one begins.
            _ if read.next <= after.0
                && let Some(len) = frame::len_of(&bytes, Lsn(read.next)) =>
            {
                len
            }
            _ => break,
        };
        read.next += 1;
        read.end += len as u64;
        bytes = bytes.slice(len..);
    }
    let missing = Lsn(read.next);
    if let Some(newest) = frame::newest_after(&bytes, missing).filter(|newest| *newest > after) {
        let what = format!(
            "append {} at byte {} does not check, and was durable before append {} was written",
            missing.0, read.end, newest.0
        );
        return Err(damaged(path, &what));
    }
    Ok(read)
}

fn create(path: &Path, room: u64) -> io::Result<File> {
    let mut file = permissions::create(path)?;
    let mut left = room as usize;
    while left > 0 {
        let some = left.min(ZEROES.len());
        file.write_all(&ZEROES[..some])?;
        left -= some;
    }
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn reopen(path: &Path, end: u64) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let room = file.metadata()?.len();
    file.seek(SeekFrom::Start(end))?;
    Ok((file, room))
}
