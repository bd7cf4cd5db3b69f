//! The files of the front: appends one after the other, in files named by their first append. A file goes when
//! everything in it is safe in SQLite's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::id::Partition;
use tidegate_store::log::Lsn;
use tidegate_store::{Error, Kind, Result};

use super::super::lock::{sync_names, unusable};
use super::super::tail::Pending;
use super::frame;

/// A file that is this long is followed by another.
const FILE_LEN_MAX: u64 = 64 * 1024 * 1024;

/// The file that is being written.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    partition: Partition,
    file: File,
    len: u64,
    /// Every file with the last append in it, oldest first; the one that is being written comes last.
    spans: Vec<(PathBuf, Lsn)>,
}

/// What opening found: the files, and the appends in them that follow `after`, in order.
pub(super) type Found = (Files, Vec<Arc<Pending>>);

impl Files {
    /// Opens what is there and reads the appends after `after`, which SQLite has already.
    pub(super) fn open(dir: &Path, partition: Partition, after: Lsn) -> Result<Found> {
        let mut paths = existing(dir, partition)?;
        paths.sort_unstable();
        let (mut appends, mut spans, mut last, mut len) = (Vec::new(), Vec::new(), after, 0);
        let count = paths.len();
        for (place, (_, path)) in paths.into_iter().enumerate() {
            let (found, good) = read(&path, place + 1 == count)?;
            for pending in found {
                let lsn = pending.lsn;
                if lsn > last {
                    if lsn.0 != last.0 + 1 {
                        let message =
                            format!("{} is damaged: append {} is missing", path.display(), last.0 + 1);
                        return Err(Error::new(Kind::Unreadable, message));
                    }
                    last = lsn;
                    appends.push(Arc::new(pending));
                }
            }
            spans.push((path, last));
            len = good;
        }
        let file = match spans.last() {
            Some((path, _)) => reopen(path, len).map_err(|cause| unusable(path, cause))?,
            None => {
                let path = path_of(dir, partition, Lsn(last.0 + 1));
                let file = File::create(&path).map_err(|cause| unusable(&path, cause))?;
                spans.push((path, last));
                file
            }
        };
        sync_names(dir).map_err(|cause| unusable(dir, cause))?;
        Ok((Self { dir: dir.to_owned(), partition, file, len, spans }, appends))
    }

    /// Adds sealed appends, the last of which is `last`; they are on the disk when this answers. When it fails, what
    /// was added is taken off again; `Err(None)` when even that failed, or when it is not known what is on the disk.
    pub(super) fn add(&mut self, bytes: &[u8], last: Lsn) -> std::result::Result<(), (io::Error, bool)> {
        if self.len > FILE_LEN_MAX {
            self.follow(last).map_err(|cause| (cause, true))?;
        }
        if let Err(cause) = self.file.write_all(bytes) {
            let undone = reposition(&mut self.file, self.len).is_ok();
            return Err((cause, undone));
        }
        self.file.sync_data().map_err(|cause| (cause, false))?;
        self.len += bytes.len() as u64;
        if let Some(span) = self.spans.last_mut() {
            span.1 = last;
        }
        Ok(())
    }

    /// Begins another file; `last` will be the last append of the first batch in it.
    fn follow(&mut self, last: Lsn) -> io::Result<()> {
        let path = path_of(&self.dir, self.partition, last);
        self.file = File::create(&path)?;
        sync_names(&self.dir)?;
        self.len = 0;
        self.spans.push((path, last));
        Ok(())
    }

    /// The last append of the files that are no longer written.
    pub(super) fn full(&self) -> Option<Lsn> {
        let closed = &self.spans[..self.spans.len().saturating_sub(1)];
        closed.last().map(|(_, last)| *last)
    }

    /// Removes the files that are no longer written and end at or before `safe`.
    pub(super) fn remove(&mut self, safe: Lsn) -> io::Result<()> {
        while self.spans.len() > 1 && self.spans[0].1 <= safe {
            fs::remove_file(&self.spans[0].0)?;
            self.spans.remove(0);
        }
        Ok(())
    }
}

fn path_of(dir: &Path, partition: Partition, first: Lsn) -> PathBuf {
    dir.join(format!("p{partition}.front-{:020}", first.0))
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

/// The appends of a file and how long they are. Only the newest file may have a torn end.
fn read(path: &Path, newest: bool) -> Result<(Vec<Pending>, u64)> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|cause| unusable(path, cause))?;
    file.read_to_end(&mut bytes).map_err(|cause| unusable(path, cause))?;
    let mut bytes = Bytes::from(bytes);
    let (mut found, mut good) = (Vec::new(), 0);
    while let Some((pending, len)) = frame::decode(&bytes) {
        found.push(pending);
        good += len as u64;
        bytes = bytes.slice(len..);
    }
    if !newest && !bytes.is_empty() {
        let message = format!("{} is damaged after {good} bytes", path.display());
        return Err(Error::new(Kind::Unreadable, message));
    }
    Ok((found, good))
}

fn reopen(path: &Path, len: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    reposition(&mut file, len)?;
    file.sync_all()?;
    Ok(file)
}

fn reposition(file: &mut File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    io::Seek::seek(file, io::SeekFrom::Start(len)).map(drop)
}
