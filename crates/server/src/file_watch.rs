//! Files that are read again when they change. A file that cannot be read any more changes nothing;
//! the log says so once.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use crate::error::Result;

/// How often files are checked for changes.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What identifies the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMark {
    modified: Option<SystemTime>,
    len: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileMark {
    /// Identifies the content of a file; `None` when there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: found.modified().ok(),
            len: found.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&found),
        })
    }
}

/// Something that is read from files.
pub(crate) trait Reload: Send + Sync + 'static {
    /// What it is, in the log.
    const WHAT: &str;

    /// Reads the files again if they have changed; returns whether they had.
    fn reload(&self) -> Result<bool>;
}

/// Follows changes of files until the server shuts down.
pub(crate) async fn follow<T: Reload>(watched: Arc<T>, stopping: CancellationToken) {
    while tokio::time::timeout(CHECK_EVERY, stopping.cancelled()).await.is_err() {
        let watched = Arc::clone(&watched);
        // A disk may be slow.
        match tokio::task::spawn_blocking(move || watched.reload()).await {
            Ok(Ok(true)) => tracing::info!(what = T::WHAT, "files have changed and were read again"),
            Ok(Err(error)) => {
                tracing::error!(what = T::WHAT, error = error.message, "files have changed and are not used");
            }
            Ok(Ok(false)) | Err(_) => {}
        }
    }
}
