//! Snapshots as files next to SQLite's, so that they never hold up the writer. A file gets its
//! final name only when all of it is durable; each part has a checksum, and so has the head before
//! them.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::id::Partition;
use tidegate_store::log::Lsn;
use tidegate_store::{Error, Result, StoreErrorKind};

use super::lock::{sync_names, unusable};
use super::permissions;

const MAGIC: &[u8; 8] = b"TGSNAP\x00\x01";
const UNFINISHED: &str = ".tmp";
/// Magic, append, number of parts.
const START_LEN: usize = 8 + 8 + 4;
/// Length and checksum of a part.
const ENTRY_LEN: usize = 8 + 16;
/// The maximum plausible number of parts.
const PARTS_MAX: u32 = 1 << 20;

/// A snapshot that was verified.
#[derive(Debug)]
pub(super) struct Snapshot {
    path: PathBuf,
    file: BufReader<File>,
    lens: Vec<usize>,
}

/// Lists the snapshots of a partition, newest first, intact or not.
pub(super) fn all(dir: &Path, partition: Partition) -> Result<Vec<(Lsn, PathBuf)>> {
    let start = start_of(partition);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|cause| unusable(dir, cause))? {
        let path = entry.map_err(|cause| unusable(dir, cause))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let upto = name.and_then(|name| name.strip_prefix(&start)?.parse().ok());
        found.extend(upto.map(|upto| (Lsn(upto), path.clone())));
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

/// Writes a snapshot. It is durable when this returns, and does not exist when this fails.
pub(super) fn write(dir: &Path, partition: Partition, upto: Lsn, parts: &[Bytes]) -> Result<()> {
    let path = dir.join(format!("{}{}", start_of(partition), upto.0));
    let unfinished = dir.join(format!("{}{}{UNFINISHED}", start_of(partition), upto.0));
    let written = fill(&unfinished, upto, parts)
        .and_then(|()| fs::rename(&unfinished, &path))
        .and_then(|()| sync_names(dir));
    written.map_err(|cause| {
        // The remains are removed now, or when the directory is opened the next time.
        let _ = fs::remove_file(&unfinished);
        let message = format!("the snapshot {} could not be written; the log is unchanged", path.display());
        Error::new(StoreErrorKind::Unavailable, message).with_source(cause)
    })
}

/// Removes the snapshots that the one up to `upto` has replaced.
pub(super) fn remove_older(dir: &Path, partition: Partition, upto: Lsn) -> Result<()> {
    for (_, path) in all(dir, partition)?.into_iter().filter(|found| found.0 < upto) {
        fs::remove_file(&path).map_err(|cause| unusable(&path, cause))?;
    }
    Ok(())
}

/// Removes unfinished snapshots that a crash left.
pub(super) fn remove_unfinished(dir: &Path, partition: Partition) -> Result<()> {
    let start = start_of(partition);
    for entry in fs::read_dir(dir).map_err(|cause| unusable(dir, cause))? {
        let path = entry.map_err(|cause| unusable(dir, cause))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(&start) && name.ends_with(UNFINISHED) {
            fs::remove_file(&path).map_err(|cause| unusable(&path, cause))?;
        }
    }
    Ok(())
}

impl Snapshot {
    /// Opens a snapshot and verifies all of it, so that no part of a damaged one is used.
    pub(super) fn open(path: &Path, upto: Lsn) -> Result<Self> {
        let damaged = |cause: io::Error| {
            Error::new(StoreErrorKind::Unreadable, format!("the snapshot {} is damaged", path.display()))
                .with_source(cause)
        };
        let (lens, sums) = check_head(path, upto).map_err(damaged)?;
        let mut whole =
            Self { path: path.to_owned(), file: at_parts(path, lens.len()).map_err(damaged)?, lens };
        for (place, sum) in sums.into_iter().enumerate() {
            let part = whole.part(place).map_err(damaged)?;
            if checksum(&part) != sum {
                return Err(damaged(wrong("a part is not what was written")));
            }
        }
        whole.file = at_parts(path, whole.lens.len()).map_err(damaged)?;
        Ok(whole)
    }

    /// Reads its parts, in order.
    pub(super) fn parts(mut self) -> impl Iterator<Item = Result<Vec<u8>>> {
        (0..self.lens.len()).map(move |place| self.part(place).map_err(|cause| unusable(&self.path, cause)))
    }

    fn part(&mut self, place: usize) -> io::Result<Vec<u8>> {
        let mut part = vec![0; self.lens.get(place).copied().unwrap_or_default()];
        self.file.read_exact(&mut part)?;
        Ok(part)
    }
}

fn start_of(partition: Partition) -> String {
    format!("p{partition}.snapshot-")
}

fn fill(path: &Path, upto: Lsn, parts: &[Bytes]) -> io::Result<()> {
    let mut head = Vec::with_capacity(START_LEN + parts.len() * ENTRY_LEN + 16);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&upto.0.to_le_bytes());
    let count = u32::try_from(parts.len()).ok().filter(|count| *count <= PARTS_MAX);
    head.extend_from_slice(&count.ok_or_else(|| wrong("it has too many parts"))?.to_le_bytes());
    for part in parts {
        head.extend_from_slice(&(part.len() as u64).to_le_bytes());
        head.extend_from_slice(&checksum(part));
    }
    let sum = checksum(&head);
    let mut file = BufWriter::new(permissions::create(path)?);
    file.write_all(&head)?;
    file.write_all(&sum)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The lengths and checksums of the parts, if they and the file's length are as they were written.
fn check_head(path: &Path, upto: Lsn) -> io::Result<(Vec<usize>, Vec<[u8; 16]>)> {
    let file = File::open(path)?;
    let whole_len = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut head = vec![0; START_LEN];
    file.read_exact(&mut head)?;
    let count = u32::from_le_bytes(field(&head, 16)?);
    if head[..8] != MAGIC[..] || u64::from_le_bytes(field(&head, 8)?) != upto.0 || count > PARTS_MAX {
        return Err(wrong("it does not start as a snapshot does"));
    }
    head.resize(head_len(count as usize) - 16, 0);
    file.read_exact(&mut head[START_LEN..])?;
    let mut sum = [0; 16];
    file.read_exact(&mut sum)?;
    if sum != checksum(&head) {
        return Err(wrong("its list of parts is not what was written"));
    }
    let (mut lens, mut sums, mut left) =
        (Vec::new(), Vec::new(), whole_len - head_len(count as usize) as u64);
    for entry in head[START_LEN..].chunks_exact(ENTRY_LEN) {
        let len = u64::from_le_bytes(field(entry, 0)?);
        left = left.checked_sub(len).ok_or_else(|| wrong("it is cut short"))?;
        lens.push(usize::try_from(len).map_err(|_| wrong("a part is too long"))?);
        sums.push(field(entry, 8)?);
    }
    if left > 0 {
        return Err(wrong("it is too long"));
    }
    Ok((lens, sums))
}

fn at_parts(path: &Path, count: usize) -> io::Result<BufReader<File>> {
    let mut file = File::open(path)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(head_len(count) as u64))?;
    Ok(BufReader::new(file))
}

const fn head_len(count: usize) -> usize {
    START_LEN + count * ENTRY_LEN + 16
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; N]> {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).ok_or_else(|| wrong("it is cut short"))
}

fn checksum(bytes: &[u8]) -> [u8; 16] {
    Fingerprint::of("snapshot").part(bytes).short().to_le_bytes()
}

fn wrong(how: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, how)
}
