//! A storage in a folder. A file is written under a temporary name, synced and renamed, so a crash
//! leaves either all of it or nothing. Its content type is detected from its bytes when it is read:
//! nothing is kept next to it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::bounds::RESULT_FILE_LEN_MAX;
use tidegate_core::fingerprint::hex;
use tokio::task::spawn_blocking;

use super::{
    ResultStorage, StorageError, StorageFuture, StoredFile, content_type, validate_file, validate_key,
};

/// The folder of temporary files. No key names it, because no segment starts with a dot.
const TEMPORARY: &str = ".tmp";
/// Temporary files of this age were left by a crash: no write takes so long.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);
/// The permissions of what it creates, as those of the embedded store: results are for those who
/// may read generations, and not for every user of the machine.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// Stores files in a folder.
#[derive(Clone, Debug)]
pub struct FolderStorage {
    /// Absolute and without symbolic links.
    root: PathBuf,
}

impl FolderStorage {
    /// Opens a folder, and creates it if it does not exist. Removes what a crash left behind.
    ///
    /// # Errors
    /// When it cannot be created or written.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, StorageError> {
        let root = root.as_ref();
        create_folders(&root.join(TEMPORARY)).map_err(failed("creating the folder"))?;
        let root = root.canonicalize().map_err(failed("opening the folder"))?;
        let folder = Self { root };
        folder.remove_leftovers().map_err(failed("writing to the folder"))?;
        Ok(folder)
    }

    /// Removes old temporary files. Others may be in use by another process. The file system's own
    /// clock decides, as a new file shows it.
    fn remove_leftovers(&self) -> io::Result<()> {
        let (probe, file) = self.create_temporary()?;
        let now = file.metadata()?.modified()?;
        fs::remove_file(&probe)?;
        for entry in fs::read_dir(self.root.join(TEMPORARY))? {
            let entry = entry?;
            let is_old = |at| now.duration_since(at).is_ok_and(|age| age >= LEFTOVER_AGE);
            if entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(is_old) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn create_temporary(&self) -> io::Result<(PathBuf, File)> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let path = self.root.join(TEMPORARY).join(hex(&name));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
        let file = options.open(&path)?;
        Ok((path, file))
    }

    fn write(&self, key: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.root.join(key);
        let parent = path.parent().unwrap_or(&self.root);
        create_folders(parent).map_err(failed("creating a folder"))?;
        self.check_inside(&parent.canonicalize().map_err(failed("opening a folder"))?)?;
        let (temporary, mut file) = self.create_temporary().map_err(failed("creating a file"))?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, &path))
            .and_then(|()| self.sync_folders(parent));
        if written.is_err() {
            // Best effort: what stays is removed at a later start.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed("writing a file"))
    }

    /// Syncs a folder and those above it, which may be new too.
    fn sync_folders(&self, folder: &Path) -> io::Result<()> {
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(&self.root)) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    fn read(&self, key: &str) -> Result<Option<StoredFile>, StorageError> {
        let path = match self.root.join(key).canonicalize() {
            Ok(path) => path,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed("opening a file")(error)),
        };
        self.check_inside(&path)?;
        if !path.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let most = RESULT_FILE_LEN_MAX as u64 + 1;
        let read = File::open(&path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        read.map_err(failed("reading a file"))?;
        if bytes.len() > RESULT_FILE_LEN_MAX {
            return Err(StorageError::TooLarge);
        }
        let content_type = content_type::detect(&bytes).to_owned();
        Ok(Some(StoredFile { content_type, bytes: Bytes::from(bytes) }))
    }

    /// A key cannot leave the folder, but a symbolic link in it can.
    fn check_inside(&self, path: &Path) -> Result<(), StorageError> {
        if path.starts_with(&self.root) {
            return Ok(());
        }
        Err(StorageError::InvalidKey("leads out of the folder by a symbolic link"))
    }
}

impl ResultStorage for FolderStorage {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Bytes) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            validate_file(key, content_type, &bytes)?;
            let (folder, key) = (self.clone(), key.to_owned());
            joined(spawn_blocking(move || folder.write(&key, &bytes)).await)
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<StoredFile>> {
        Box::pin(async move {
            validate_key(key)?;
            let (folder, key) = (self.clone(), key.to_owned());
            joined(spawn_blocking(move || folder.read(&key)).await)
        })
    }
}

/// Creates a folder and those above it that do not exist, for this user alone.
fn create_folders(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path)
}

/// A blocking task that did not end was aborted with its runtime, or panicked.
fn joined<T>(ended: Result<Result<T, StorageError>, tokio::task::JoinError>) -> Result<T, StorageError> {
    ended.unwrap_or_else(|error| Err(StorageError::Unavailable(error.to_string())))
}

/// Whether a path leads to nothing: a part of it does not exist, or is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> StorageError {
    move |error| StorageError::Io { action, reason: error.to_string() }
}

#[cfg(test)]
mod tests;
