//! The directory and the proof that it is ours. The lock goes with the process, however it ends, so whoever gets
//! it knows that nobody else has any of these files open.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tidegate_store::{Error, Result, StoreErrorKind};

use super::permissions;

/// The file whose lock it is.
pub(super) const NAME: &str = "LOCK";

/// A directory that is ours.
#[derive(Debug)]
pub(super) struct Lock {
    dir: PathBuf,
    _file: File,
}

impl Lock {
    /// Makes the directory if need be, readable to nobody else, and takes it.
    pub(super) fn take(dir: &Path) -> Result<Self> {
        make(dir).map_err(|cause| unusable(dir, cause))?;
        let path = dir.join(NAME);
        let file = permissions::open_or_create(&path).map_err(|cause| unusable(&path, cause))?;
        match file.try_lock() {
            Ok(()) => {
                permissions::tighten(dir).map_err(|cause| unusable(dir, cause))?;
                Ok(Self { dir: dir.to_owned(), _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let message = format!("the directory {} is used by another process", dir.display());
                Err(Error::new(StoreErrorKind::Held, message))
            }
            Err(TryLockError::Error(cause)) => Err(unusable(&path, cause)),
        }
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A file or directory that the system does not let us use.
pub(super) fn unusable(path: &Path, cause: io::Error) -> Error {
    Error::new(StoreErrorKind::Unavailable, format!("{} cannot be used", path.display())).with_source(cause)
}

/// Makes the names in a directory durable, not only what they stand for.
#[cfg(unix)]
pub(super) fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Elsewhere the system keeps names by itself.
#[cfg(not(unix))]
pub(super) fn sync_names(_dir: &Path) -> io::Result<()> {
    Ok(())
}

fn make(dir: &Path) -> io::Result<()> {
    if fs::metadata(dir).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, permissions::modes::DIR);
    builder.create(dir)
}
