//! The directory and its exclusive lock. The lock ends with the process, however that ends, so its
//! holder knows that no other process has any of these files open.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tidegate_store::{Error, Result, StoreErrorKind};

use super::permissions;

/// The name of the lock file.
pub(super) const NAME: &str = "LOCK";

/// A locked directory.
#[derive(Debug)]
pub(super) struct Lock {
    dir: PathBuf,
    _file: File,
}

impl Lock {
    /// Creates the directory if necessary, readable to no other user, and locks it.
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

    /// The path of the directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// The error for a file or directory that the system does not let us use.
pub(super) fn unusable(path: &Path, cause: io::Error) -> Error {
    Error::new(StoreErrorKind::Unavailable, format!("{} cannot be used", path.display())).with_source(cause)
}

/// Syncs a directory, so that the names in it are durable and not only the contents of the files.
#[cfg(unix)]
pub(super) fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Other systems make names durable by themselves.
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
