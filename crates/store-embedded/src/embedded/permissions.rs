//! File permissions: only the owner may read the store's files. They are created that way, and
//! opening the directory closes what an earlier version left open to others.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file, or truncates it.
pub(super) fn create(path: &Path) -> io::Result<File> {
    options().create(true).truncate(true).open(path)
}

/// Opens a file as it is, creating it if it does not exist.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    options().create(true).truncate(false).open(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, modes::FILE);
    options
}

/// Removes all other users' permissions from the store's own files in a directory, and from the
/// directory if it holds nothing else. Files of another user stay as they are.
#[cfg(unix)]
pub(super) fn tighten(dir: &Path) -> io::Result<()> {
    let mut is_ours = true;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is_file = entry.file_type()?.is_file();
        if is_file && entry.file_name().to_str().is_some_and(is_store_file) {
            modes::close(&entry.path(), modes::FILE)?;
        } else {
            is_ours = false;
        }
    }
    if is_ours { modes::close(dir, modes::DIR) } else { Ok(()) }
}

/// Other systems have no such modes.
#[cfg(not(unix))]
pub(super) fn tighten(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns whether a name is one of the store's: `LOCK`, or `p` and the number of a partition, and
/// a suffix.
#[cfg(unix)]
fn is_store_file(name: &str) -> bool {
    let partition = name.strip_prefix('p').and_then(|rest| rest.split_once('.'));
    let is_numbered = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    name == super::lock::NAME || partition.is_some_and(|(digits, _)| is_numbered(digits))
}

#[cfg(unix)]
pub(super) mod modes {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// The mode of the store's directory.
    pub(crate) const DIR: u32 = 0o700;
    /// The mode of its files.
    pub(super) const FILE: u32 = 0o600;
    /// The permissions of others.
    const OTHERS: u32 = 0o077;

    pub(super) fn close(path: &Path, mode: u32) -> io::Result<()> {
        let found = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?.permissions().mode(),
        };
        if found & OTHERS == 0 {
            return Ok(());
        }
        match fs::set_permissions(path, Permissions::from_mode(mode)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            done => done,
        }
    }
}
